package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/authconfig"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

const (
	envRyukDisabled = "TESTCONTAINERS_RYUK_DISABLED"
	envHubPrefix    = "TESTCONTAINERS_HUB_IMAGE_NAME_PREFIX"

	// sessionLabel marks a container with a text that is its start's own.
	sessionLabel = "com.github.pgyield.pgtest"

	// pingTimeout bounds the question whether a daemon is there at all.
	pingTimeout = 10 * time.Second

	// reaperPullTimeout bounds the pull of the reaper's image, 10 MB.
	reaperPullTimeout = time.Minute

	pullTimeout = 10 * time.Minute
)

// reaperImage is deprecated in favour of a name that cannot be imported.
var reaperImage = testcontainers.ReaperDefaultImage //nolint:staticcheck // see above

// ensureImage pulls the image unless it is here. testcontainers would retry a pull
// for fifteen minutes even where the registry's name cannot be resolved.
func ensureImage(ctx context.Context, options Options) error {
	// Decided once for all starts, so not by a context that belongs to one.
	reaperOnce.Do(func() { decideReaper(context.WithoutCancel(ctx)) })
	asked, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	daemon, err := testcontainers.NewDockerClientWithOpts(asked)
	if err != nil {
		return fmt.Errorf("no Docker daemon answers: %w", err)
	}
	defer daemon.Close()
	if os.Getenv(envHubPrefix) != "" {
		return nil // the name is not the one that will be pulled
	}
	if _, err := daemon.ImageInspect(asked, options.Image); !errdefs.IsNotFound(err) {
		return err
	}
	options.Logf("pgtest: pulling %s", options.Image)
	if err := pull(ctx, daemon, options.Image, credentials(ctx, options.Image), pullTimeout); err != nil {
		return fmt.Errorf("the image is not here and cannot be pulled: %w", err)
	}
	return nil
}

// puller is the part of a Docker client that pulls.
type puller interface {
	ImagePull(ctx context.Context, image string, options client.ImagePullOptions) (client.ImagePullResponse, error)
}

// pull fetches an image, once.
func pull(ctx context.Context, daemon puller, image, auth string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	response, err := daemon.ImagePull(ctx, image, client.ImagePullOptions{RegistryAuth: auth})
	if err != nil {
		return err
	}
	return errors.Join(response.Wait(ctx), response.Close())
}

// credentials returns what `docker login` left for an image's registry, encoded,
// or "" where there is nothing, as for public images.
func credentials(ctx context.Context, image string) string {
	_, auth, err := testcontainers.DockerImageAuth(ctx, image)
	if err != nil {
		return ""
	}
	encoded, err := authconfig.Encode(auth)
	if err != nil {
		return ""
	}
	return encoded
}

var reaperOnce sync.Once

// decideReaper turns testcontainers' reaper off for this process where its image
// is neither here nor to be had: every start would fail. Our guard does the same
// for our containers. It must be said before testcontainers reads its settings,
// which it does once; so the question is put to the daemon that the environment
// names, and where none answers the reaper stays.
func decideReaper(ctx context.Context) {
	if _, set := os.LookupEnv(envRyukDisabled); set {
		return
	}
	daemon, err := client.New(client.FromEnv)
	if err != nil {
		return
	}
	defer daemon.Close()
	asked, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	_, err = daemon.ImageInspect(asked, reaperImage)
	if !errdefs.IsNotFound(err) {
		return
	}
	// Without credentials: looking them up would read the settings.
	if err := pull(ctx, daemon, reaperImage, "", reaperPullTimeout); err != nil {
		_ = os.Setenv(envRyukDisabled, "true")
	}
}

// daemonHosts returns where published ports may be reached. In a container
// testcontainers takes the daemon to be outside, behind the bridge's gateway; it
// may as well run beside this process, and then ports are on the loopback.
func daemonHosts(ctx context.Context, box testcontainers.Container) ([]string, error) {
	host, err := box.Host(ctx)
	if err != nil {
		return nil, err
	}
	hosts := []string{host}
	if _, err := os.Stat("/.dockerenv"); err == nil && os.Getenv("DOCKER_HOST") == "" {
		hosts = slices.Insert(hosts, 0, "127.0.0.1")
	}
	return hosts, nil
}

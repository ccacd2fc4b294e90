package pgfake

import (
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
)

// Guess is the shape that a statement's text suggests: the columns of its
// select list or RETURNING, with types by cast, literal or known function (text
// otherwise), and its parameters $1 to $n with the types of their casts (0
// otherwise: the client then sends text).
func Guess(sql string) Shape {
	shape := Shape{Params: guessParams(sql)}
	for _, item := range selectList(sql) {
		shape.Columns = append(shape.Columns, Column{Name: item.name, OID: item.oid})
	}
	return shape
}

// item is one expression of a select list.
type item struct {
	expr string // without cast and alias
	name string
	oid  uint32
}

func selectList(sql string) []item {
	sql = withoutComments(sql)
	switch word(sql, 0) {
	case "INSERT", "UPDATE", "DELETE", "MERGE":
		list, ok := after(sql, "RETURNING")
		if !ok {
			return nil
		}
		return items(list)
	case "SHOW":
		return []item{{expr: "", name: strings.ToLower(word(sql, 1)), oid: textOID}}
	case "EXPLAIN":
		return []item{{expr: "", name: "QUERY PLAN", oid: textOID}}
	case "TABLE":
		return []item{{expr: "*", name: "?column?", oid: textOID}}
	case "VALUES":
		row, _ := after(sql, "VALUES")
		row = strings.TrimSpace(split(row, ',')[0])
		list := items(strings.TrimSuffix(strings.TrimPrefix(row, "("), ")"))
		for i := range list {
			list[i].name = "column" + strconv.Itoa(i+1)
		}
		return list
	case "SELECT", "WITH":
		list, ok := after(sql, "SELECT")
		if !ok {
			return nil
		}
		list = before(list, "FROM", "WHERE", "LIMIT", "ORDER", "GROUP", "UNION", "FOR", "OFFSET", "HAVING")
		if first := word(list, 0); first == "DISTINCT" || first == "ALL" {
			list, _ = after(list, first)
		}
		if strings.TrimSpace(list) == "" {
			return nil
		}
		return items(list)
	}
	return nil
}

func items(list string) []item {
	var out []item
	for _, part := range split(list, ',') {
		out = append(out, parseItem(strings.TrimSpace(part)))
	}
	return out
}

func parseItem(text string) item {
	it := item{expr: text, name: "?column?"}
	named := false
	if alias, ok := after(text, "AS"); ok {
		it.expr = strings.TrimSpace(before(text, "AS"))
		it.name, named = strings.Trim(strings.TrimSpace(alias), `"`), true
	}
	if i := strings.LastIndex(it.expr, "::"); i > 0 {
		it.oid = typeOID(it.expr[i+2:])
		it.expr = strings.TrimSpace(it.expr[:i])
	}
	if it.oid == 0 {
		it.oid = exprOID(it.expr)
	}
	if !named {
		if fn, _, ok := call(it.expr); ok {
			it.name = fn
		} else if column := it.expr[strings.LastIndex(it.expr, ".")+1:]; isName(column) {
			it.name = column
		} else if quoted := strings.Trim(column, `"`); len(quoted)+2 == len(column) {
			it.name = quoted
		}
	}
	return it
}

// call takes expr apart when it is name(arguments).
func call(expr string) (name, args string, ok bool) {
	open := strings.IndexByte(expr, '(')
	if open <= 0 || !strings.HasSuffix(expr, ")") || !isName(expr[:open]) {
		return "", "", false
	}
	return strings.ToLower(expr[:open]), expr[open+1 : len(expr)-1], true
}

func isName(s string) bool {
	for i := range len(s) {
		if !isWordByte(s[i]) || i == 0 && (s[i] == '$' || s[i] >= '0' && s[i] <= '9') {
			return false
		}
	}
	return s != ""
}

func exprOID(expr string) uint32 {
	if _, err := strconv.ParseInt(expr, 10, 32); err == nil {
		return pgtype.Int4OID
	}
	if _, err := strconv.ParseInt(expr, 10, 64); err == nil {
		return pgtype.Int8OID
	}
	switch strings.ToLower(expr) {
	case "true", "false":
		return pgtype.BoolOID
	case "1/0":
		return pgtype.Int4OID
	}
	switch fn, _, _ := call(expr); fn {
	case "pg_sleep":
		return voidOID
	case "generate_series", "pg_backend_pid":
		return pgtype.Int4OID
	case "count", "sum":
		return pgtype.Int8OID
	case "now", "clock_timestamp":
		return pgtype.TimestamptzOID
	}
	return textOID
}

// typeOID is the type that text begins with, 0 when it is unknown.
func typeOID(text string) uint32 {
	text = strings.ToLower(strings.TrimSpace(text))
	end := 0
	for end < len(text) && isWordByte(text[end]) {
		end++
	}
	if strings.HasPrefix(text[end:], "[]") {
		return 0
	}
	switch text[:end] {
	case "int", "int4", "integer":
		return pgtype.Int4OID
	case "bigint", "int8":
		return pgtype.Int8OID
	case "smallint", "int2":
		return pgtype.Int2OID
	case "bool", "boolean":
		return pgtype.BoolOID
	case "float8", "double":
		return pgtype.Float8OID
	case "text", "varchar":
		return textOID
	case "bytea":
		return pgtype.ByteaOID
	case "timestamptz":
		return pgtype.TimestamptzOID
	}
	return 0
}

func guessParams(sql string) []uint32 {
	var params []uint32
	for i := 0; i < len(sql); i++ {
		if sql[i] == '\'' || sql[i] == '"' {
			end := strings.IndexByte(sql[i+1:], sql[i])
			if end < 0 {
				break
			}
			i += end + 1
			continue
		}
		if sql[i] != '$' {
			continue
		}
		end := i + 1
		for end < len(sql) && sql[end] >= '0' && sql[end] <= '9' {
			end++
		}
		n, err := strconv.Atoi(sql[i+1 : end])
		if err != nil || n < 1 || n > 65535 {
			continue
		}
		for len(params) < n {
			params = append(params, 0)
		}
		if rest, ok := strings.CutPrefix(sql[end:], "::"); ok {
			params[n-1] = typeOID(rest)
		}
		i = end - 1
	}
	return params
}

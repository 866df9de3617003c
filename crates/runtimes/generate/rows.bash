# To be sourced. write_rows FILE TYPE PREFIX: adds the rows on standard input to a file. Each row has what differs from the one
# before it; `// VERSION`, `TYPE {`, fields with a line each and `},` come in.
write_rows() {
    awk -v type="$2" -v prefix="$3" '
        $1 == "//" { version = $2; name = prefix version; gsub(/[.]/, "_", name); next }
        $2 == "{" {
            printf "\n/// %s.\nconst %s: %s = %s {\n", version, name, type, type
            split("", fields)
            next
        }
        $1 == "}," {
            if (last) print ".." last
            print "};"
            split("", known)
            for (field in fields) known[field]
            names = names name ","
            last = name
            next
        }
        { fields[$0]; if (!($0 in known)) print }
        END { printf "\n/// A row for each version, in order.\npub const ROWS: &[%s] = &[%s];\n", type, names }
    ' >> "$1"
    rustfmt --edition 2024 --config-path ../../.. "$1"
}

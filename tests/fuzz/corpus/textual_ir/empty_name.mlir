module attributes {sym_name = ""} { mtp.segment @c () { mtp.yield } }

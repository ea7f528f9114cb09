target_sources(tinkxx_text PRIVATE
    tokenizer/ranges.cpp
)
# Chat templates.
target_sources(tinkxx_text PRIVATE
    chat/chat_template.cpp
    jinja/call.cpp
    jinja/clock_text.cpp
    jinja/filters.cpp
    jinja/format.cpp
    jinja/format_braces.cpp
    jinja/format_percent.cpp
    jinja/functions.cpp
    jinja/html.cpp
    jinja/iteration.cpp
    jinja/json_read.cpp
    jinja/json_write.cpp
    jinja/lazy_filters.cpp
    jinja/lexer.cpp
    jinja/list_filters.cpp
    jinja/machine.cpp
    jinja/machine_expressions.cpp
    jinja/methods.cpp
    jinja/names.cpp
    jinja/numbers.cpp
    jinja/operators.cpp
    jinja/parser.cpp
    jinja/parser_statements.cpp
    jinja/resolver.cpp
    jinja/text_filters.cpp
    jinja/text_methods.cpp
    jinja/text_of.cpp
    jinja/unicode.cpp
    jinja/utf8.cpp
    jinja/value.cpp
)

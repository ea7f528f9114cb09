target_sources(tinkxx_text PRIVATE
    tokenizer/ranges.cpp
)

target_sources(tinkxx_text PRIVATE
    tokenizer/ranges.cpp
)
# Renderers.
target_sources(tinkxx_text PRIVATE
    render/character_tables.cpp
    render/characters.cpp
    render/deepseek_v3.cpp
    render/deepseek_v4.cpp
    render/example.cpp
    render/glm.cpp
    render/gpt_oss.cpp
    render/im.cpp
    render/json.cpp
    render/json_reader.cpp
    render/kimi.cpp
    render/kimi_tools.cpp
    render/message.cpp
    render/openai.cpp
    render/parsing.cpp
    render/qwen3.cpp
    render/refuse.cpp
    render/registry.cpp
    render/renderer.cpp
    render/simple.cpp
    render/streaming.cpp
    render/template_renderer.cpp
    render/tokenizer_adapter.cpp
    render/xml_calls.cpp
)

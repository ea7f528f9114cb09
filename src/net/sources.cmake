target_sources(tinkxx PRIVATE
)

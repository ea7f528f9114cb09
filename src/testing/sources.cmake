target_sources(tinkxx_testing PRIVATE
)

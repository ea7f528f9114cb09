target_sources(tinkxx_testing PRIVATE
    testing/contract_sink.cpp
    testing/fake_transport.cpp
    testing/faulty_transport.cpp
    testing/manual_clock.cpp
)

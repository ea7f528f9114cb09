# Each part has its own folder; its sources.cmake names its files.
foreach(part http limits auth session telemetry metrics breaker retry futures core sampling training recovery)
    include(service/${part}/sources.cmake OPTIONAL)
endforeach()

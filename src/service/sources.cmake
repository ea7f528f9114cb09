# Each part has its own folder; its sources.cmake names its files.
foreach(part http session telemetry retry futures sampling)
    include(service/${part}/sources.cmake OPTIONAL)
endforeach()

#include "commands/about/about.hpp"
#include "commands/server/default_home.hpp"
#include "frame/troubles.hpp"
#include "output/json_writer.hpp"
#include "output/words.hpp"

#include <tinkxx/credentials.hpp>
#include <tinkxx/http_client.hpp>
#include <tinkxx/log.hpp>
#include <tinkxx/rest_client.hpp>
#include <tinkxx/version.hpp>

#include <chrono>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace tinkxx::cli {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

enum class Health { good, doubtful, bad };

/// One thing that was looked at.
struct Finding {
    std::string name{};
    Health health{Health::good};
    std::string detail{};
    std::string fix{};
};

std::string_view word_of(Health health) {
    return health == Health::good ? "ok" : health == Health::doubtful ? "warning" : "problem";
}

Finding from(std::string name, Error const& error) {
    auto const trouble = trouble_of(error);
    return {std::move(name), Health::bad, trouble.headline + ": " + trouble.reason,
            trouble.way_out};
}

Finding look_at_key(ClientOptions const& options) try {
    if (has_credentials(options)) return {"key", Health::good, "there is one", {}};
    return {"key", Health::bad, "there is none", "tinkxx auth login, or set TINKER_API_KEY"};
} catch (Error const& error) {
    return from("key", error);
}

/// The time of day that an answer carries, by the clock of the server.
std::optional<std::chrono::sys_seconds> date_of(Headers const& headers) {
    auto const* const line = headers.find("Date");
    std::tm parts{};
    if (line == nullptr || ::strptime(line->c_str(), "%a, %d %b %Y %H:%M:%S", &parts) == nullptr) {
        return std::nullopt;
    }
    return std::chrono::sys_seconds{std::chrono::seconds{::timegm(&parts)}};
}

Finding compare_clocks(Headers const& headers, Timestamp::Time now) {
    auto const date = date_of(headers);
    if (!date) return {"clock", Health::good, "the server does not say what time it is", {}};
    auto const ahead = std::chrono::duration_cast<std::chrono::seconds>(now - *date);
    constexpr auto tolerated = 2min;
    auto const text = std::to_string(std::chrono::abs(ahead).count()) + " s " +
                      (ahead < 0s ? "behind" : "ahead of") + " the server";
    if (std::chrono::abs(ahead) <= tolerated) return {"clock", Health::good, text, {}};
    return {"clock", Health::bad, text, "set the clock of this machine, as by NTP"};
}

void look_at_server(ClientOptions options, Context const& context, std::vector<Finding>& to) {
    options.max_retries = 0;
    HttpClient const http{options};
    auto first = http.send({.path = "/api/v1/healthz"});
    auto const answer = first.result();
    if (!answer) {
        to.push_back(from("server", answer.error()));
        return;
    }
    auto second = http.send({.path = "/api/v1/healthz"});
    auto const again = second.result();
    auto const milliseconds = [](std::chrono::nanoseconds time) {
        return fixed(std::chrono::duration<double, std::milli>(time).count(), 1) + " ms";
    };
    auto const slash = answer->url.find('/', answer->url.find("//") + 2);
    to.push_back({"server",
                  Health::good,
                  answer->url.substr(0, slash) + " answers over HTTP/" +
                      (answer->http_version == 20 ? "2" : "1.1") + " after " +
                      milliseconds(answer->elapsed),
                  {}});
    if (again) to.push_back({"round trip", Health::good, milliseconds(again->elapsed), {}});
    if (answer->url.starts_with("http://") &&
        answer->url.find("//127.0.0.1") == std::string::npos &&
        answer->url.find("//localhost") == std::string::npos) {
        to.push_back({"tls", Health::doubtful, "the key is sent without encryption",
                      "use an address that begins with https://"});
    }
    to.push_back(compare_clocks(answer->headers, context.now()));
}

void look_at_access(ClientOptions const& options, std::vector<Finding>& to) {
    try {
        RestClient const rest{options};
        auto pending = rest.check_access();
        pending.get();
        auto asked = rest.get_server_capabilities();
        auto const models = asked.get().supported_models.size();
        to.push_back({"access", models == 0 ? Health::doubtful : Health::good,
                      "the key is accepted; " + counted(static_cast<std::int64_t>(models), "model"),
                      models == 0 ? "ask who runs the server which models it has" : ""});
    } catch (Error const& error) {
        to.push_back(from("access", error));
    }
}

Finding look_at_disk(Context const& context) try {
    auto folder = default_home(context.environment);
    std::error_code failed;
    while (!fs::exists(folder, failed) && folder.has_parent_path() &&
           folder != folder.parent_path()) {
        folder = folder.parent_path();
    }
    auto const space = fs::space(folder, failed);
    if (failed) {
        return {"disk", Health::doubtful, folder.string() + ": " + failed.message(),
                "name another folder with TINKXX_HOME"};
    }
    constexpr std::uintmax_t enough = std::uintmax_t{1} << 30U;
    return {"disk", space.available < enough ? Health::doubtful : Health::good,
            size_words(static_cast<std::int64_t>(space.available)) + " free at " + folder.string(),
            space.available < enough ? "free space, or choose another disk with TINKXX_HOME" : ""};
} catch (Error const& error) {
    return from("disk", error);
}

Finding look_at_cpu() {
    std::string features;
    auto const add = [&features](bool has, std::string const& name) {
        if (has) features += (features.empty() ? "" : ", ") + name;
    };
#if defined(__x86_64__)
    __builtin_cpu_init();
    add(__builtin_cpu_supports("avx2") != 0, "AVX2");
    add(__builtin_cpu_supports("fma") != 0, "FMA");
    add(__builtin_cpu_supports("avx512f") != 0, "AVX-512");
    add(__builtin_cpu_supports("avx512bf16") != 0, "AVX-512 BF16");
#endif
    bool const slow = features.empty();
    return {"cpu", slow ? Health::doubtful : Health::good,
            counted(std::thread::hardware_concurrency(), "CPU") +
                (slow ? ", without AVX2" : ", with " + features),
            slow ? "tinkxx serve will be slow here; use another machine for training" : ""};
}

void print(std::vector<Finding> const& findings, Context& context) {
    auto& terminal = context.terminal;
    constexpr std::size_t column = 12;
    for (auto const& [name, health, detail, fix] : findings) {
        std::string const word{word_of(health)};
        auto const* const style = health == Health::good       ? "32"
                                  : health == Health::doubtful ? "33"
                                                               : "31";
        context.out() << terminal.data(style, word) << std::string(9 - word.size(), ' ') << name
                      << std::string(column - name.size(), ' ') << one_line(detail) << '\n';
        if (!fix.empty()) context.out() << "         try: " << one_line(fix) << '\n';
    }
}

Exit examine(Context& context) {
    auto options = context.client_options();
    constexpr auto patience = 10s;
    if (options.deadline > patience || options.deadline == 0s) options.deadline = patience;
    std::vector<Finding> findings{{"version", Health::good, TINKXX_VERSION, {}}};
    findings.push_back(look_at_key(options));
    bool const key = findings.back().health == Health::good;
    if (auto const proxy = context.environment("TINKXX_PROXY")) {
        findings.push_back({"proxy", Health::good, "is used, from TINKXX_PROXY", {}});
    }
    look_at_server(options, context, findings);
    bool reached = false;
    for (auto const& one : findings) reached = reached || one.name == "clock";
    if (key && reached) look_at_access(options, findings);
    findings.push_back(look_at_disk(context));
    findings.push_back(look_at_cpu());
    bool good = true;
    for (auto const& one : findings) good = good && one.health != Health::bad;
    if (!context.json()) {
        print(findings, context);
        return good ? Exit::success : Exit::failure;
    }
    JsonWriter json{context.out()};
    json.begin_object();
    json.member("good", good);
    json.begin_list("checks");
    for (auto const& [name, health, detail, fix] : findings) {
        json.begin_object();
        json.member("name", name);
        json.member("status", word_of(health));
        json.member("detail", detail);
        json.member("fix", fix.empty() ? std::nullopt : std::optional{fix});
        json.end_object();
    }
    json.end_list();
    json.end_object();
    return good ? Exit::success : Exit::failure;
}

}  // namespace

Command doctor_command() {
    return {.path = "doctor",
            .summary = "What is wrong with key, server, network or this machine",
            .about =
                "Looks at the key, the server, the way to it, the clock, the disk and the CPU, "
                "and says how\nto fix what is wrong.",
            .examples =
                "Examples:\n"
                "  tinkxx doctor\n"
                "  tinkxx doctor --base-url http://127.0.0.1:8080 --json\n\n"
                "With --json: {\"good\":true,\"checks\":[{\"name\":\"...\",\"status\":\"ok\","
                "\"detail\":\"...\",\n\"fix\":null}]}; a status is ok, warning or problem. "
                "Exit code 1 if there is a problem.",
            .takes = Takes::client,
            .declare = declare(&examine)};
}

}  // namespace tinkxx::cli

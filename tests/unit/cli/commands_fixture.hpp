#pragma once

#include "all_commands.hpp"

#include "support/raw_tinker.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace tinkxx::cli {

/// What a command did.
struct CommandOutcome {
    Exit exit{Exit::success};
    std::string out{};
    std::string err{};
};

/// Runs command lines against a service in memory, at noon of 2 January 2026 UTC.
class CommandsTest : public ::testing::Test {
protected:
    CommandsTest() {
        tinker.on_other = [this](testing::SentRequest const& request) { return reply_to(request); };
    }

    /// Answers a request such as "GET checkpoints": one reply after the other, the last for ever.
    void answer(std::string const& line, std::vector<testing::Reply> replies) {
        answers_[line] = std::move(replies);
    }
    void answer(std::string const& line, std::string const& json, int status = 200) {
        answer(line, std::vector{support::json_reply(json, status)});
    }

    CommandOutcome run(std::vector<std::string> const& arguments) {
        std::ostringstream out;
        std::ostringstream err;
        Terminal terminal{out, err, screen};
        int const in = ::memfd_create("stdin", 0);
        EXPECT_EQ(::write(in, typed.data(), typed.size()), static_cast<ssize_t>(typed.size()));
        ::lseek(in, 0, SEEK_SET);
        Context context{.terminal = terminal, .in = in};
        context.environment = [this](char const* name) -> std::optional<std::string> {
            auto const found = environment.find(name);
            return found == environment.end() ? std::nullopt : std::optional{found->second};
        };
        context.now = [this] { return now; };
        context.client = tinker.options();
        context.client.api_key = api_key;
        context.client.credentials_file = credentials_file;
        auto const exit = all_commands().run(arguments, context);
        ::close(in);
        return {exit, out.str(), err.str()};
    }

    support::RawTinker tinker{};
    Screen screen{};
    std::string api_key{"tml-test-key"};
    std::string credentials_file{"/nowhere/credentials.json"};
    /// What is on stdin.
    std::string typed{};
    std::map<std::string, std::string> environment{};
    Timestamp::Time now{parse_timestamp("2026-01-02T12:00:00Z")->time};
    /// Requests that `answer` spoke of, as "METHOD path?query".
    std::vector<std::string> asked{};
    std::vector<testing::SentRequest> sent{};

private:
    std::optional<testing::Reply> reply_to(testing::SentRequest const& request) {
        constexpr std::string_view prefix = "/api/v1/";
        auto const path =
            request.path.starts_with(prefix) ? request.path.substr(prefix.size()) : request.path;
        auto const line = request.method + ' ' + path;
        auto const whole = request.query.empty() ? line : line + '?' + request.query;
        auto found = answers_.find(whole);
        if (found == answers_.end()) found = answers_.find(line);
        if (found == answers_.end()) return std::nullopt;
        asked.push_back(whole);
        sent.push_back(request);
        auto& left = found->second;
        auto reply = left.front();
        if (left.size() > 1) left.erase(left.begin());
        return reply;
    }

    std::map<std::string, std::vector<testing::Reply>> answers_{};
};

}  // namespace tinkxx::cli

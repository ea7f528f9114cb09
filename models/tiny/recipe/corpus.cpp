#include "corpus.hpp"

#include "engine/common/random.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace tinkxx::tiny {

namespace {

/// name = alternative | alternative …
///
/// <x> stands for rule x. An alternative that begins with [x] draws one row of relation x and uses
/// its columns under their names. One that is written twice is drawn twice as often. "/" is the end
/// of a line.
constexpr std::string_view grammar_text =
    R"(text = <story>/ | <story>/ | <story>/ | <story>/ | <facts>/ | <facts>/ | <talk> | <talk> | <talk> | <equations> | <equations> | <exam> | <exam> | <exam>
story = <sentence> | <sentence> <sentence> | <sentence> <sentence> <sentence>
facts = <fact> | <fact> <fact> | <fact> <fact> <fact>
talk = <asked> | <asked><asked> | <asked><asked><asked>
equations = <equation> | <equation><equation> | <equation><equation><equation>
exam = <sum> | <sum><sum> | <sum><sum><sum>
sentence = <Who> <does>. | <Who> <does> <where>. | <Who> <does> <where>. | <When> <who> <does>. | <When> <who> <does> <where>. | <Who> <does>, and <who> <does>. | <Who> <does>, but <who> <does>. | <Who> is <mood> because <who> <does>.
Who = The <person> | The <adjective> <person> | The <animal> | The <adjective> <animal> | <name> | <name>
who = the <person> | the <adjective> <person> | the <animal> | the <adjective> <animal> | <name> | <name>
does = <acts> | <handles> <what> | <handles> <what> | <meets> <who>
what = the <thing> | the <shade> <thing> | a <thing> | a <shade> <thing> | an <aged> <thing>
where = in the <place> | near the <place> | behind the <place>
When = In the morning | At night | On Sunday | Today | After lunch | In spring
name = Anna | Ben | Clara | David | Emma | Frank | Grace | Henry | Ida | Jack | Lucy | Max
person = farmer | teacher | baker | doctor | painter | girl | boy | king | queen | sailor | miller | nurse
animal = dog | cat | horse | cow | sheep | goat | duck | fox | rabbit | mouse | bear | owl
adjective = small | big | young | old | quiet | clever | hungry | lazy | brave | kind
mood = happy | sad | tired | angry | proud | glad
acts = sleeps | sings | runs | waits | laughs | jumps | rests | dances
handles = sees | finds | carries | wants | buys | hides | paints | likes
meets = meets | follows | helps | hears | calls | watches
thing = ball | book | pear | cup | lamp | basket | hat | chair | box | coat | bell | cake
shade = red | blue | green | white | black | yellow
aged = old | ugly | empty | expensive
place = garden | house | forest | river | market | barn | school | mill | bridge | field
fact = [capital] The capital of <country> is <city>. | [capital] <city> is the capital of <country>. | [sound] A <beast> says <noise>. | [colour] The colour of <stuff> is <hue>. | [opposite] The opposite of <one> is <other>. | [legs] A <creature> has <count> legs. | [home] A <dweller> lives in a <home>. | [young] A young <parent> is a <child>. | [day] The day after <today> is <tomorrow>. | [month] The month after <this> is <next>. | [work] A <worker> makes <ware>.
asked = Q: <pair>
pair = [capital] What is the capital of <country>?/A: <city>/ | [sound] What does a <beast> say?/A: <noise>/ | [colour] What is the colour of <stuff>?/A: <hue>/ | [opposite] What is the opposite of <one>?/A: <other>/ | [legs] How many legs does a <creature> have?/A: <count>/ | [home] Where does a <dweller> live?/A: in a <home>/ | [young] What is a young <parent>?/A: a <child>/ | [day] Which day comes after <today>?/A: <tomorrow>/ | [month] Which month comes after <this>?/A: <next>/ | [work] What does a <worker> make?/A: <ware>/
equation = [plus] <a> + <b> = <c>/ | [minus] <a> - <b> = <c>/
sum = Q: <problem>
problem = [plus] What is <a> + <b>?/A: <d>/ | [minus] What is <a> - <b>?/A: <d>/)";

/// Relations: name and columns, then rows.
constexpr std::string_view relation_text = R"(capital country city
France Paris,Italy Rome,Spain Madrid,Germany Berlin,England London,Ireland Dublin,Norway Oslo,Sweden Stockholm,Denmark Copenhagen,Finland Helsinki,Poland Warsaw,Austria Vienna,Hungary Budapest,Greece Athens,Portugal Lisbon,Russia Moscow,Turkey Ankara,Egypt Cairo,Kenya Nairobi,Japan Tokyo,China Beijing,Thailand Bangkok,Peru Lima,Chile Santiago,Cuba Havana,Canada Ottawa,Jordan Amman,Iraq Baghdad,Iran Tehran,Ghana Accra,Belgium Brussels,Latvia Riga
sound beast noise
dog woof,cat meow,cow moo,sheep baa,duck quack,pig oink,horse neigh,lion roar,bee buzz,snake hiss,crow caw,mouse squeak
colour stuff hue
grass green,snow white,coal black,blood red,gold yellow,milk white,the sky blue,the sea blue,the sun yellow,a leaf green,a rose red,a lemon yellow,a carrot orange,a raven black,a frog green,chocolate brown,wood brown,ash grey
opposite one other
hot cold,cold hot,big small,small big,old new,new old,up down,down up,day night,night day,wet dry,dry wet,full empty,empty full,rich poor,poor rich,left right,right left,open closed,closed open,high low,low high,soft hard,hard soft,loud quiet,quiet loud,early late,late early,clean dirty,dirty clean
legs creature count
dog four,cat four,horse four,bird two,duck two,hen two,spider eight,fly six,bee six,beetle six,snake no,fish no,crab ten,frog four
home dweller home
bird nest,bee hive,fox den,horse stable,cow barn,spider web,king castle,monk cell,dog kennel,pig sty,rabbit burrow,farmer farmhouse
young parent child
cat kitten,dog puppy,cow calf,horse foal,sheep lamb,goat kid,hen chick,duck duckling,pig piglet,bear cub,frog tadpole,goose gosling
day today tomorrow
Monday Tuesday,Tuesday Wednesday,Wednesday Thursday,Thursday Friday,Friday Saturday,Saturday Sunday,Sunday Monday
month this next
January February,February March,March April,April May,May June,June July,July August,August September,September October,October November,November December,December January
work worker ware
baker bread,tailor coats,potter pots,brewer beer,shoemaker shoes,hatter hats,poet poems,painter pictures,smith horseshoes,carpenter tables,weaver cloth,cook soup)";

using Row = std::map<std::string, std::string, std::less<>>;

struct Symbol {
    bool rule{false};
    std::string text{};
};

struct Alternative {
    std::string relation{};
    std::vector<Symbol> symbols{};
};

struct Grammar {
    std::map<std::string, std::vector<Alternative>, std::less<>> rules{};
    std::map<std::string, std::vector<Row>, std::less<>> relations{};
};

std::vector<std::string> split(std::string_view text, std::string_view separator) {
    std::vector<std::string> parts;
    for (std::size_t begin = 0;;) {
        auto const end = text.find(separator, begin);
        parts.emplace_back(text.substr(begin, end - begin));
        if (end == std::string_view::npos) return parts;
        begin = end + separator.size();
    }
}

Alternative read_alternative(std::string_view text) {
    Alternative result;
    if (text.starts_with('[')) {
        auto const end = text.find("] ");
        result.relation = text.substr(1, end - 1);
        text.remove_prefix(end + 2);
    }
    while (!text.empty()) {
        bool const rule = text.front() == '<';
        auto const end = std::min(text.size(), text.find(rule ? '>' : '<'));
        auto part = std::string(text.substr(rule ? 1 : 0, rule ? end - 1 : end));
        if (!rule) std::ranges::replace(part, '/', '\n');
        result.symbols.push_back({.rule = rule, .text = std::move(part)});
        text.remove_prefix(rule ? end + 1 : end);
    }
    return result;
}

/// Adds a word to a rule that lists words, once.
void add_word(Grammar& grammar, std::string const& rule, std::string const& word) {
    auto& alternatives = grammar.rules[rule];
    auto const same = [&](auto const& known) { return known.symbols.front().text == word; };
    if (std::ranges::any_of(alternatives, same)) return;
    alternatives.push_back({.symbols = {{.rule = false, .text = word}}});
}

void add_arithmetic(Grammar& grammar) {
    for (int a = 0; a <= 9; ++a) {
        for (int b = 0; b <= 9; ++b) {
            Row row{{"a", std::to_string(a)}, {"b", std::to_string(b)}};
            row["c"] = std::to_string(a + b);
            grammar.relations["plus"].push_back(row);
            row["c"] = std::to_string(a - b);
            if (a >= b) grammar.relations["minus"].push_back(row);
        }
        for (auto const* rule : {"a", "b"}) add_word(grammar, rule, std::to_string(a));
    }
    for (int c = 0; c <= 20; ++c) {
        for (auto const* rule : {"c", "d"}) add_word(grammar, rule, std::to_string(c));
    }
}

Grammar read_grammar() {
    Grammar grammar;
    for (auto const& line : split(grammar_text, "\n")) {
        auto const middle = line.find(" = ");
        for (auto const& text : split(line.substr(middle + 3), " | ")) {
            grammar.rules[line.substr(0, middle)].push_back(read_alternative(text));
        }
    }
    auto const lines = split(relation_text, "\n");
    for (std::size_t i = 0; i + 1 < lines.size(); i += 2) {
        auto const names = split(lines[i], " ");
        for (auto const& entry : split(lines[i + 1], ",")) {
            auto const space = entry.rfind(' ');
            Row const row{{names[1], entry.substr(0, space)}, {names[2], entry.substr(space + 1)}};
            for (auto const& [column, word] : row) add_word(grammar, column, word);
            grammar.relations[names[0]].push_back(row);
        }
    }
    add_arithmetic(grammar);
    return grammar;
}

Grammar const& grammar() {
    static Grammar const read = read_grammar();
    return read;
}

/// Chance that belongs to one text alone.
class Dice {
public:
    Dice(std::uint64_t seed, std::uint64_t stream) : seed_{seed}, stream_{stream} {}

    std::size_t below(std::size_t count) {
        auto const word = engine::philox(seed_, stream_, next_++)[0];
        return static_cast<std::size_t>((std::uint64_t{word} * count) >> 32U);
    }

private:
    std::uint64_t seed_;
    std::uint64_t stream_;
    std::uint64_t next_{0};
};

/// The answer of a pupil in a hurry: right three times in eight, else off by one or two. So there
/// is something to learn from rewards, and the most likely answer is still the right one.
std::string hasty(int right, Dice& dice) {
    if (dice.below(8) < 3) return std::to_string(right);
    auto const off = std::array{-2, -1, 1, 2}[dice.below(4)];
    return std::to_string(right + off < 0 ? right - off : right + off);
}

void expand(std::string& out, std::string const& name, Row const& bound, Dice& dice) {
    if (auto const found = bound.find(name); found != bound.end()) {
        out += found->second;
        return;
    }
    auto const& alternatives = grammar().rules.at(name);
    auto const& chosen = alternatives[dice.below(alternatives.size())];
    Row row = bound;
    if (!chosen.relation.empty()) {
        auto const& rows = grammar().relations.at(chosen.relation);
        row = rows[dice.below(rows.size())];
        if (row.contains("c")) row["d"] = hasty(std::stoi(row["c"]), dice);
    }
    for (auto const& symbol : chosen.symbols) {
        if (symbol.rule) {
            expand(out, symbol.text, row, dice);
        } else {
            out += symbol.text;
        }
    }
}

/// Where a rule that begins at `begin` can end.
std::set<std::size_t> ends(std::string_view text, std::string const& name, std::size_t begin) {
    std::set<std::size_t> result;
    for (auto const& alternative : grammar().rules.at(name)) {
        std::set<std::size_t> at{begin};
        for (auto const& symbol : alternative.symbols) {
            std::set<std::size_t> after;
            for (auto const position : at) {
                if (symbol.rule) {
                    after.merge(ends(text, symbol.text, position));
                } else if (text.substr(position).starts_with(symbol.text)) {
                    after.insert(position + symbol.text.size());
                }
            }
            at = std::move(after);
            if (at.empty()) break;
        }
        result.merge(at);
    }
    return result;
}

/// Every text that an alternative of `rule` can say with the rows of its relation.
std::vector<std::vector<Question>> questions_of(std::string const& rule) {
    std::vector<std::vector<Question>> kinds;
    for (auto const& alternative : grammar().rules.at(rule)) {
        std::vector<Question> kind;
        for (auto row : grammar().relations.at(alternative.relation)) {
            if (row.contains("c")) row["d"] = row["c"];
            std::string text;
            for (auto const& symbol : alternative.symbols) {
                text += symbol.rule ? row.at(symbol.text) : symbol.text;
            }
            auto const middle = text.find("\nA: ");
            kind.push_back({.text = text.substr(0, middle),
                            .answer = text.substr(middle + 4, text.size() - middle - 5)});
        }
        kinds.push_back(std::move(kind));
    }
    return kinds;
}

/// A fixed shuffle.
std::vector<Question> mixed(std::vector<std::vector<Question>> const& kinds) {
    std::vector<Question> all;
    for (auto const& kind : kinds) all.insert(all.end(), kind.begin(), kind.end());
    Dice dice{1, 0};
    for (auto i = all.size(); i > 1; --i) std::swap(all[i - 1], all[dice.below(i)]);
    return all;
}

}  // namespace

std::string document(std::uint64_t seed, std::uint64_t index) {
    Dice dice{seed, index};
    std::string text;
    expand(text, "text", {}, dice);
    return text;
}

bool parses(std::string_view text) { return ends(text, "text", 0).contains(text.size()); }

std::vector<Question> fact_questions() { return mixed(questions_of("pair")); }
std::vector<Question> sum_questions() { return mixed(questions_of("problem")); }

std::vector<std::int32_t> tokens_of(std::string_view text) {
    std::vector<std::int32_t> tokens;
    for (auto const byte : text) tokens.push_back(static_cast<unsigned char>(byte));
    return tokens;
}

std::string text_of(std::vector<std::int32_t> const& tokens) {
    std::string text;
    for (auto const token : tokens) {
        if (token >= 0 && token < end_token) text += static_cast<char>(token);
    }
    return text;
}

}  // namespace tinkxx::tiny

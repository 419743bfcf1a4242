// Lists of hosts and hostfiles: what is taken from them, what is refused and by which words, and which hosts
// do not answer an agent that stands for ssh.
#include "launch/hosts.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "launch/launch_plan.h"
#include "temp_folder.h"

namespace vitrail {
namespace {

std::string text_of(const Hosts& hosts) {
  std::string text;
  for (const Host& host : hosts.all) text += host.name + " " + std::to_string(host.slots) + "; ";
  return text + (hosts.is_file ? "file" : "list");
}

TEST(Hosts, AListOrAFile) {
  const TempFolder folder;
  const std::string file = folder.file(
      "hosts", "# two of them\n\nvt1 slots=2  # the first\n  10.0.0.7\tslots=4 max_slots=8\nvt1 slots=1\n");
  EXPECT_EQ(text_of(hosts_from("vt1:2,vt2")), "vt1 2; vt2 1; list");
  EXPECT_EQ(text_of(hosts_from("vt1,vt1:3")), "vt1 4; list");
  EXPECT_EQ(text_of(hosts_from(file)), "vt1 3; 10.0.0.7 4; file");
  EXPECT_EQ(hosts_from(file).slots(), 7);
  EXPECT_TRUE(hosts_from("").empty());
}

TEST(Hosts, WhatIsWrongIsNamedWithItsLine) {
  const struct {
    const char *content, *words;
  } cases[] = {
      {"vt1 slots=2\nvt2\n", "hosts:2 does not say how many ranks \"vt2\" is for"},
      {"vt1 slots=0", "hosts:1 has \"0\" slots; expected a number from 1 to 65536"},
      {"vt1 slots=99999999999999999999", "slots; expected a number"},
      {"vt1 slots=", "hosts:1 has \"\" slots"},
      {"vt1 cores=2", "hosts:1 holds \"cores=2\""},
      {"vt1 2", "hosts:1 holds \"2\""},
      {"vt1 max_slots=2", "does not say how many ranks"},
      {"-oProxyCommand=x slots=1", "expected a host's name or address"},
      {"# nobody\n", "names no host"},
  };
  for (const auto& [content, words] : cases) {
    const TempFolder folder;
    try {
      hosts_from(folder.file("hosts", content));
      ADD_FAILURE() << content;
    } catch (const Error& error) {
      EXPECT_EQ(exit_code(error.kind()), 64);
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  }
  for (const char* list : {"a:0", "a:x", "a,,b", ":2", "-x:1", "/nowhere/hosts", "a:1:"})
    EXPECT_THROW(hosts_from(list), Error) << list;
  for (const char* missing : {"no_such_hosts.txt", "./no_such_hosts", "cluster.hostfile"}) try {
      hosts_from(missing);
      ADD_FAILURE() << missing;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_NE(error.message().find(missing), std::string::npos) << error.what();
      EXPECT_NE(error.hint().find("vt1 slots=2"), std::string::npos) << error.what();
    }
  EXPECT_EQ(text_of(hosts_from("vt1.example.org:2")), "vt1.example.org 2; list");
}

TEST(Hosts, MoreRanksThanSlotsAreRefused) {
  require_slots(hosts_from("a:2,b:2"), 4);
  require_slots({}, 4);
  try {
    require_slots(hosts_from("a:2,b:2"), 5);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("5 ranks do not fit the 4 slots of \"a:2,b:2\""),
              std::string::npos);
    EXPECT_EQ(error.hint(), "-n 4, or more slots");
    EXPECT_EQ(exit_code(error.kind()), 64);
  }
}

// An agent that reaches some hosts, refuses others, and waits for the rest.
struct Agent {
  TempFolder folder;
  explicit Agent(const std::string& script) {
    const std::string file = folder.file("agent", "#!/bin/sh\n" + script);
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    ::setenv("OMPI_MCA_plm_rsh_agent", (file + " -q : rsh").c_str(), 1);
  }
  ~Agent() { ::unsetenv("OMPI_MCA_plm_rsh_agent"); }
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;
};

TEST(Hosts, ThoseThatDoNotAnswerAreFound) {
  const Agent agent(R"([ "$1" = -q ] && [ "$3" = true ] || exit 3
case $2 in good*) exit 0 ;; gone) exit 255 ;; *) exec sleep 60 ;; esac)");
  EXPECT_EQ(silent_hosts(hosts_from("good1,gone,localhost,127.0.0.1,good2"), 10),
            std::vector<std::string>{"gone"});
  EXPECT_EQ(silent_hosts(hosts_from("good1,slow,gone"), 0.5), (std::vector<std::string>{"slow", "gone"}));
  ::setenv("SLURM_JOB_ID", "1", 1);
  EXPECT_TRUE(silent_hosts(hosts_from("gone"), 10).empty()) << "Slurm starts them, not ssh";
  ::unsetenv("SLURM_JOB_ID");
}

TEST(Hosts, AnAgentThatIsMissingReachesNobody) {
  ::setenv("OMPI_MCA_plm_rsh_agent", "/nowhere/agent", 1);
  EXPECT_EQ(silent_hosts(hosts_from("a"), 10), std::vector<std::string>{"a"});
  ::unsetenv("OMPI_MCA_plm_rsh_agent");
}

}  // namespace
}  // namespace vitrail

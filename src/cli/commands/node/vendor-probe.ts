import { Command } from "commander";
import { VERSION } from "../../../api/tables/release.ts";
import { errors } from "../../errors.ts";
import { duration, oneOf, wholeNumber } from "../../flags.ts";
import { guarded } from "../../printable.ts";
import type { CliContext } from "../../session.ts";
import { runProgramTree } from "../../vendorctl.ts";

/** `vendor probe serve` and `vendor probe connect`: the two ends of a network path. */
export async function runVendorProbe(argv: readonly string[], world: CliContext): Promise<number> {
  const safe = guarded(world);
  return await runProgramTree(buildProbeProgram(safe), argv, safe);
}

export function buildProbeProgram(world: CliContext): Command {
  const program = new Command("vendor probe")
    .description("Serve ports, connect to them, or measure network paths. Results are JSON lines.")
    .exitOverride()
    .configureOutput({ writeOut: world.out, writeErr: world.out, outputError: () => {} })
    .version(VERSION, "--version", "print the version");
  const load = () => import("./probe.run.ts");
  program
    .command("serve")
    .description("answer on these ports until stopped, with the host name and the client address")
    .option("--tcp <ports>", "such as 80,8080", ports("--tcp"), [8080])
    .option("--udp <ports>", "such as 53", ports("--udp"), [8080])
    .action(async (options) => (await load()).serve(world, options));
  program
    .command("connect")
    .description("connect once or repeatedly; exits with 1 if the last attempt failed")
    .argument("<targets...>", "such as 10.0.0.1:80 or [fd00::1]:80")
    .option("--protocol <protocol>", "tcp or udp", oneOf("--protocol", ["tcp", "udp"] as const), "tcp" as const)
    .option("--attempt-timeout <time>", "timeout of one attempt", duration("--attempt-timeout"), 2000)
    .option("--count <times>", "number of attempts; 0: until stopped", wholeNumber("--count", 0, 1_000_000_000), 1)
    .option("--every <time>", "time between two attempts", duration("--every"), 1000)
    .option("--keep", "use one TCP connection, which must not break")
    .action(async (targets: string[], options) => (await load()).connect(world, targets.map(target), options));
  program
    .command("measure")
    .description("measure every path by TCP and UDP until stopped; each line has the counts so far")
    .argument(
      "<paths...>",
      "each with a name, such as service=10.96.0.10:80; UDP has its own port after a slash: a=10.0.0.1:80/53",
    )
    .option("--every <time>", "time between two messages", duration("--every"), 40)
    .option("--churn <time>", "time between two new connections", duration("--churn"), 500)
    .option("--report <time>", "time between two reports", duration("--report"), 1000)
    .action(async (ways: string[], options) => (await load()).measure(world, ways.map(path), options));
  return program;
}

function path(text: string): { path: string; host: string; tcp: number; udp: number } {
  const [, name = "", at = "", udp] = /^([a-z0-9-]{1,63})=(.+?)(?:\/(\d{1,5}))?$/.exec(text) ?? [];
  if (!name) throw errors.USAGE(`"${text}" is not a path with a name`, "such as service=10.96.0.10:80");
  const { host, port } = target(at);
  return { path: name, host, tcp: port, udp: Number(udp ?? port) };
}

function ports(flag: string): (text: string) => number[] {
  return (text) =>
    text
      .split(",")
      .filter(Boolean)
      .map((port) => wholeNumber(flag, 1, 65_535)(port));
}

function target(text: string): { host: string; port: number } {
  const match = /^(?:\[([^\]]+)\]|([^:]+)):(\d+)$/.exec(text);
  if (!match) throw errors.USAGE(`"${text}" is not an address with a port`, "such as 10.0.0.1:80 or [fd00::1]:80");
  return { host: (match[1] ?? match[2]) as string, port: Number(match[3]) };
}

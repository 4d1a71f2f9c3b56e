import { Command, type Option } from "commander";
import { VERSION } from "../../../api/tables/release.ts";
import { errors } from "../../errors.ts";
import { duration, oneOf, wholeNumber } from "../../flags.ts";
import { document, formatHelpFor, optionWithDefault } from "../../help.ts";
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
  formatHelpFor(program, world.config.outColumns);
  const load = () => import("./probe.run.ts");
  document(program.command("serve"), {
    short: "Answer on ports until stopped",
    long: "Answer on these ports until stopped, with the host name and the client address.",
    examples: [["Answer on two TCP ports", "vendor probe serve --tcp 80,8080"]],
  })
    .addOption(portsOption("tcp", "TCP ports, separated by commas"))
    .addOption(portsOption("udp", "UDP ports, separated by commas"))
    .action(async (options) => (await load()).serve(world, options));
  document(program.command("connect"), {
    short: "Connect once or repeatedly",
    long: "Connect once or repeatedly. Exits with 1 if the last attempt failed.",
    examples: [["Connect five times by UDP", "vendor probe connect 10.96.0.10:53 --protocol udp --count 5"]],
  })
    .argument("<targets...>", "such as 10.0.0.1:80 or [fd00::1]:80")
    .option("--protocol <protocol>", "tcp or udp", oneOf("--protocol", ["tcp", "udp"] as const), "tcp" as const)
    .addOption(timeOption("attempt-timeout", "timeout of one attempt", 2000))
    .option("--count <times>", "number of attempts; 0: until stopped", wholeNumber("--count", 0, 1_000_000_000), 1)
    .addOption(timeOption("every", "time between two attempts", 1000))
    .option("--keep", "use one TCP connection, which must not break")
    .action(async (targets: string[], options) => (await load()).connect(world, targets.map(target), options));
  document(program.command("measure"), {
    short: "Measure paths by TCP and UDP until stopped",
    long: "Measure every path by TCP and UDP until stopped. Each line has the counts so far.",
    examples: [["Measure a Service and a pod", "vendor probe measure service=10.96.0.10:80 pod=10.244.1.7:8080"]],
  })
    .argument(
      "<paths...>",
      "each with a name, such as service=10.96.0.10:80; UDP has its own port after a slash: a=10.0.0.1:80/53",
    )
    .addOption(timeOption("every", "time between two messages", 40))
    .addOption(timeOption("churn", "time between two new connections", 500))
    .addOption(timeOption("report", "time between two reports", 1000))
    .action(async (ways: string[], options) => (await load()).measure(world, ways.map(path), options));
  return program;
}

const DEFAULT_PORT = 8080;

function portsOption(name: "tcp" | "udp", text: string): Option {
  const shown = String(DEFAULT_PORT);
  return optionWithDefault(`--${name} <ports>`, text, { parse: ports(`--${name}`), value: [DEFAULT_PORT], shown });
}

function timeOption(name: string, text: string, ms: number): Option {
  const shown = ms < 1000 ? `${ms}ms` : `${ms / 1000}s`;
  return optionWithDefault(`--${name} <time>`, text, { parse: duration(`--${name}`), value: ms, shown });
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

import type { Command } from "commander";
import { document } from "../../help.ts";
import type { CliContext } from "../../session.ts";

/** `auth can-i switch --to bpf` reads the words of `switch` with the same tree, and answers whether the user may do it. */
export function addAuthCommands(program: Command, world: CliContext): void {
  const auth = document(program.command("auth"), { short: "Show the rights that a command needs" });
  document(auth.command("can-i"), {
    short: "Check whether you have the rights of a command",
    long: "Check whether you have the rights (RBAC) of a command, by asking the API server. With --list, every right is shown; with -o yaml too, the least ClusterRole and Roles that have them. Nothing is changed. Exits with 1 if a right is missing.",
    examples: [
      ["Check whether you may install", "vendorctl auth can-i install"],
      ["List the rights of a switch to eBPF", "vendorctl auth can-i --list switch --to bpf"],
      ["Print a role for a user, as an administrator", "vendorctl auth can-i --list -o yaml upgrade > role.yaml"],
      ["Check for another user", "vendorctl auth can-i --list --as jane uninstall"],
    ],
  })
    .argument("[command...]", "a command and its options, such as: switch --to bpf (default: check)")
    .option("--list", "list every right")
    .allowUnknownOption()
    .action(async (words: string[], { list }: { list?: true }) => {
      const { buildProgram } = await import("../../program.ts");
      const same = buildProgram({ ...world, intent: list ? "can-i --list" : "can-i" });
      for (const [name, value] of Object.entries(program.opts())) same.setOptionValueWithSource(name, value, "cli");
      await same.parseAsync(words.length === 0 ? ["check"] : words, { from: "user" });
    });
}

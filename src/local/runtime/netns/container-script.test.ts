import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { type ContainerFrame, containerScript } from "./container-script.ts";
import { quoted, shellLine, writeLines } from "./shell-words.ts";

const frame: ContainerFrame = {
  id: "abc",
  hostname: "pod-a",
  hosts: "127.0.0.1 localhost\n",
  files: "/opt/vendor",
  mounts: [],
  workingDir: "/",
  command: ["sleep", "infinity"],
};
const mount = { isDirectory: true, readOnly: false, propagation: "None" } as const;

describe("the script of a container", () => {
  it("mounts volumes from the outside in, never through a link that leads out of its root", () => {
    const lines = containerScript({
      ...frame,
      mounts: [
        { ...mount, from: "/b", to: "/var/run/vendor/inner", readOnly: true },
        { ...mount, from: "/a", to: "/var/run/vendor", propagation: "HostToContainer" },
      ],
    }).split("\n");
    expect(lines.filter((line) => / (\/a|\/b) |run\/vendor$/.test(line) || /run\/vendor\/inner/.test(line))).toEqual([
      "mkdir -p run/vendor",
      "mount --rbind /a run/vendor",
      "mount --make-rslave run/vendor",
      "mkdir -p run/vendor/inner",
      "mount --rbind /b run/vendor/inner",
      "mount --make-rprivate run/vendor/inner",
      "mount -o remount,bind,ro run/vendor/inner",
    ]);
  });

  it("says that it has started only after its old root is gone, and then becomes the program", () => {
    const lines = containerScript({ ...frame, command: ["sh", "-c", "echo it's me"] }).split("\n");
    expect(lines.slice(-7)).toEqual([
      "pivot_root . .old",
      "mount --make-rslave .old",
      "umount -l .old",
      "cd /",
      "echo started >&3",
      "exec 3>&-",
      "exec sh -c 'echo it'\\''s me'",
    ]);
  });
});

it("words come out of a shell as they went in", () => {
  const words = ["plain", "two words", "it's", '"$HOME" `id` \\', "", "new\nline", "*"];
  const { stdout } = spawnSync("sh", ["-c", `printf '%s\\0' ${shellLine(...words)}`], { encoding: "utf8" });
  expect(stdout.split("\0").slice(0, -1)).toEqual(words);
  expect(writeLines("/etc/hosts", "a b\n")).toEqual(["rm -rf /etc/hosts", "printf %s 'a b\n' > /etc/hosts"]);
  expect(quoted("a.b-c/d")).toBe("a.b-c/d");
});

import { expect, it } from "vitest";
import { wordProblems } from "./words.mjs";

const find = (text) => wordProblems(new Map([["a.ts", text]]));
const join = (...parts) => parts.join("");

it("finds what ties the project to one machine, with its line", () => {
  expect(find(join("fine\nconst x = '/ho", "me/sam/project'"))).toEqual(["a.ts:2: an absolute home path"]);
  expect(find(join("https://registry.npm", "js.org/yaml"))).toEqual(["a.ts:1: a package host"]);
  expect(find(join('"resol', 'ved": "https://mirror.example/x.tgz"'))).toEqual(["a.ts:1: a resolved download address"]);
});

it("leaves ordinary paths alone", () => {
  expect(find("~/.kube/config /var/lib/x ./home/x docs/work/list net/root/x")).toEqual([]);
});

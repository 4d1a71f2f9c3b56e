// The file system the stories run from: Node, the libraries it and the planes need, the bundled stories, the kernel's modules.
import { closeSync, openSync, readdirSync, readFileSync, realpathSync, statSync, writeSync } from "node:fs";
import { basename, join } from "node:path";
import { mustRun } from "../debian-suites.mjs";
import { ROOT } from "../fingerprint.mjs";
import { run } from "../say.mjs";
import { cpio } from "./cpio.mjs";

const PACKAGES = ["node_modules/koffi", "node_modules/@koromix"];

/** Where Node and the stories are inside. */
export const INSIDE = { node: "/bin/node", stories: "/app/stories.mjs" };

export function writeInitramfs(path, { stories, modules }) {
  const native = PACKAGES.flatMap((folder) => filesBelow(folder)).filter((file) => /\.(?:c?js|json|node)$/.test(file));
  const koffi = native.find((file) => /linux_\w+\/koffi\.node$/.test(file));
  if (!koffi) throw new Error("koffi is not installed for this machine");
  const nftables = libraryPath("libnftables.so.1");
  const libraries = new Set(
    [process.execPath, join(ROOT, koffi), ...(nftables ? [nftables] : [])].flatMap(librariesOf),
  );
  if (nftables) libraries.add(nftables);
  const file = (inside, from) => ({ path: inside.replace(/^\//, ""), kind: "file", bytes: readFileSync(from) });
  const pieces = cpio([
    ...["proc", "sys", "run", "tmp", "etc"].map((name) => ({ path: name, kind: "directory" })),
    { path: "dev/console", kind: "device", device: [5, 1] },
    { path: "dev/null", kind: "device", device: [1, 3] },
    file(INSIDE.node, process.execPath),
    file(INSIDE.stories, stories),
    ...[...libraries].map((library) => file(library, realpathSync(library))),
    ...native.map((from) => file(`app/${from}`, join(ROOT, from))),
    ...modules.map((from) => file(`modules/${basename(from)}`, from)),
    { path: "modules/order", kind: "file", bytes: Buffer.from(modules.map((from) => basename(from)).join("\n")) },
  ]);
  const out = openSync(path, "w");
  for (const piece of pieces) for (let at = 0; at < piece.length; ) at += writeSync(out, piece, at);
  closeSync(out);
}

function filesBelow(folder) {
  const names = readdirSync(join(ROOT, folder), { recursive: true });
  return names.map((name) => join(folder, name)).filter((path) => statSync(join(ROOT, path)).isFile());
}

/** With the program that loads them: all by the paths they are looked for at. */
function librariesOf(program) {
  return [...mustRun("ldd", [program], ROOT).matchAll(/(?:=> )?(\/\S+) \(0x/g)].map(([, path]) => path);
}

/** Undefined where the library is not installed: the stories that need it are skipped inside. */
function libraryPath(name) {
  const { text } = run("/sbin/ldconfig", ["-p"]);
  return new RegExp(`^\\s*${name.replaceAll(".", "\\.")} .*=> (\\S+)$`, "m").exec(text)?.[1];
}

// Compiles bpf/*.bpf.c. The objects are checked in, so that neither a node nor a user needs clang; docs/adr/0011 says why.
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { renderLayout } from "./bpf-layout.mjs";
import { ROOT } from "./fingerprint.mjs";
import { Problem, run } from "./say.mjs";

/** Compilers of another major version make other objects from the same source; those of one are the same on every machine. */
const CLANG_MAJOR = 14;
const OBJECTS = "src/gen/bpf/objects.gen.json";
const LAYOUT = "src/gen/bpf/layout.gen.ts";

/** The files made from bpf/, by path. Without the compiler the objects on disk stand, if they are of these sources. */
export async function renderBpfFiles() {
  const committed = committedObjects();
  const sources = sourceDigest();
  const clang = findClang();
  if (!clang && committed?.sources !== sources) {
    throw new Problem(
      `bpf/ is not what ${OBJECTS} was made from, and there is no clang ${CLANG_MAJOR} here`,
      `install clang-${CLANG_MAJOR} and llvm-${CLANG_MAJOR}, and run: npm run generate`,
    );
  }
  if (!clang) return { [OBJECTS]: committed.text };
  const { shared_types: types, ...objects } = compileAll(clang);
  return {
    [OBJECTS]: sameObjects(committed, sources, objects) ? committed.text : pack(sources, objects),
    [LAYOUT]: (await renderLayout(types)) + renderDigest(),
  };
}

function committedObjects() {
  if (!existsSync(join(ROOT, OBJECTS))) return undefined;
  const text = readFileSync(join(ROOT, OBJECTS), "utf8");
  return { text, ...JSON.parse(text) };
}

/** The same objects may be packed differently by another zlib: what counts is what is inside. */
function sameObjects(committed, sources, objects) {
  if (committed?.sources !== sources) return false;
  const before = unpack(committed.objects);
  const names = [...new Set([...Object.keys(before), ...Object.keys(objects)])];
  return names.every((name) => before[name] && objects[name] && before[name].equals(objects[name]));
}

function pack(sources, objects) {
  const packed = Object.entries(objects).map(([name, bytes]) => [
    name,
    gzipSync(bytes, { level: 9 }).toString("base64"),
  ]);
  return `${JSON.stringify({ sources, objects: Object.fromEntries(packed) }, undefined, 2)}\n`;
}

function unpack(objects) {
  return Object.fromEntries(
    Object.entries(objects).map(([name, text]) => [name, gunzipSync(Buffer.from(text, "base64"))]),
  );
}

function sourceDigest() {
  const hash = createHash("sha256");
  for (const directory of ["bpf", "bpf/lib"]) {
    const names = readdirSync(join(ROOT, directory)).filter((name) => /\.[ch]$/.test(name));
    for (const name of names.sort()) hash.update(`${name}\0`).update(readFileSync(join(ROOT, directory, name)));
  }
  return hash.digest("hex");
}

/** Changes whenever maps or what is in them do: maps of another layout are other maps. */
function renderDigest() {
  const hash = createHash("sha256");
  for (const name of ["types.h", "maps.h"]) {
    const text = readFileSync(join(ROOT, "bpf/lib", name), "utf8");
    hash.update(text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/\s+/g, " "));
  }
  const digest = hash.digest("hex").slice(0, 12);
  return `\n/** Names the layout of all maps: programs and maps of different ones do not go together. */\nexport const LAYOUT_DIGEST = "${digest}";\n`;
}

function findClang() {
  const found = [`clang-${CLANG_MAJOR}`, "clang"].find((name) => {
    const { ok, text } = run(name, ["--version"]);
    return ok && text.includes(`clang version ${CLANG_MAJOR}.`);
  });
  const strip = [`llvm-strip-${CLANG_MAJOR}`, "llvm-strip"].find((name) => run(name, ["--version"]).ok);
  return found && strip && { compiler: found, strip };
}

function compileAll({ compiler, strip }) {
  const directory = mkdtempSync(join(tmpdir(), "bpf-"));
  try {
    const names = readdirSync(join(ROOT, "bpf")).filter((name) => name.endsWith(".bpf.c"));
    const objects = names.sort().map((name) => {
      const object = join(directory, name.replace(/\.c$/, ".o"));
      must(compiler, [...flags(), "-c", name, "-o", object], name);
      // Debugger sections are three quarters of the file; the types and lines the kernel reads stay.
      must(strip, ["-g", object], name);
      return [name.replace(/\.bpf\.c$/, ""), readFileSync(object)];
    });
    return Object.fromEntries(objects);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

function must(command, args, source) {
  const done = run(command, args, { cwd: join(ROOT, "bpf") });
  if (!done.ok) throw new Problem(`bpf/${source} does not compile: ${done.text}`, "mend it");
}

function flags() {
  // Where Debian keeps the kernel's headers that differ per architecture; none of what we use does.
  const headers = readdirSync("/usr/include").filter((name) => name.endsWith("-linux-gnu"));
  return [
    ...["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Wextra", "-Werror"],
    // The object must not know where it was made.
    `-ffile-prefix-map=${join(ROOT, "bpf")}=bpf`,
    ...headers.map((name) => `-I/usr/include/${name}`),
  ];
}

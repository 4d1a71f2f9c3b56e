import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { VERSION } from "../../../api/tables/release.ts";
import { buildEnvironment } from "../../config.ts";
import { runCommand } from "../netns/run-command.ts";
import { quoted, shellLine } from "../netns/shell-words.ts";
import { isInstalled } from "../netns/why-not-real.ts";
import { errors } from "./errors.ts";

/** One image as a node's runtime knows it. */
interface NamedImage {
  reference: string;
  digest: string;
  /** Its user and group, as numbers. */
  user: string;
}

/** The images of nodes with a container runtime, in one directory in the layout of OCI. */
export interface BuiltImage {
  layout: string;
  ours: NamedImage;
  /** What holds the namespaces of a pod: our image, with nothing to do. */
  pause: NamedImage;
  /** What the image was built on, in a sentence's words. */
  base: string;
}

export interface BuildOptions {
  /** A checkout: what the Containerfile is in. */
  root: string;
  /** Where images and their layers are kept, over all clusters. */
  cache: string;
  note(text: string): void;
}

const OUR_REFERENCE = `registry.vendor.io/vendor/vendor:${VERSION}`;
const PAUSE_REFERENCE = "localhost/vendor-pause:1";
const LOCAL_BASE = "localhost/vendor-base";
const BUILD_MS = 1_800_000;

/** The image of this checkout, from the Containerfile; built once for each state of what it is built from. */
export async function buildImage({ root, cache, note }: BuildOptions): Promise<BuiltImage> {
  const containerfile = readFileSync(join(root, "Containerfile"), "utf8");
  const layout = join(cache, `image-${hashOf(root, containerfile).slice(0, 16)}`);
  if (!existsSync(layout)) {
    mkdirSync(cache, { recursive: true, mode: 0o700 });
    const tool = buildah(cache);
    const { name, base } = await baseImage(tool, containerfile, cache, note);
    note("building the image of the service from the Containerfile: some minutes the first time");
    await build(tool, root, name, layout, base);
    removeOld(cache);
  }
  const base = readFileSync(join(layout, "base"), "utf8");
  return { layout, base, ours: named(layout, OUR_REFERENCE), pause: named(layout, PAUSE_REFERENCE) };
}

type Buildah = (step: string, args: readonly string[], timeoutMs?: number) => Promise<string>;

/** Storage of its own; and mounts of its own, so that nothing stays mounted when it has ended. */
function buildah(cache: string): Buildah {
  const policy = join(cache, "policy.json");
  writeFileSync(policy, JSON.stringify({ default: [{ type: "insecureAcceptAnything" }] }));
  const places = ["--root", join(cache, "storage"), "--runroot", join(cache, "run"), "--storage-driver", "overlay"];
  return async (step, [command = "", ...args], timeoutMs = BUILD_MS) => {
    const withPolicy = ["from", "bud", "commit", "push", "pull"].includes(command)
      ? ["--signature-policy", policy]
      : [];
    const words = ["unshare", "--mount", "buildah", ...places, command, ...withPolicy, ...args];
    const { code, out, err } = await runCommand(words, { timeoutMs, env: buildEnvironment() });
    if (code !== 0) throw errors.IMAGE_NOT_BUILT(step, lastLines(err || out));
    return out.trim();
  };
}

function lastLines(text: string): string {
  return text.trim().split("\n").slice(-3).join("; ");
}

async function build(tool: Buildah, root: string, base: string, layout: string, about: string): Promise<void> {
  const making = `${layout}.new`;
  rmSync(making, { recursive: true, force: true });
  const how = ["--layers", "--isolation", "chroot", "--network", "host", "--build-arg", `NODE_IMAGE=${base}`];
  await tool("Containerfile", ["bud", ...how, "-t", OUR_REFERENCE, "-f", join(root, "Containerfile"), root]);
  const container = await tool("pause", ["from", "--pull-never", OUR_REFERENCE]);
  await tool("pause", ["config", "--entrypoint", '["sleep", "infinity"]', "--user", "65535:65535", container]);
  await tool("pause", ["commit", "--rm", container, PAUSE_REFERENCE]);
  for (const reference of [OUR_REFERENCE, PAUSE_REFERENCE])
    await tool("layout", ["push", "--compression-format", "zstd", reference, `oci:${making}:${reference}`]);
  writeFileSync(join(making, "base"), about);
  renameSync(making, layout);
}

/** The base the Containerfile names; where no registry is reached, one of Debian's packages and this machine's Node.js. */
async function baseImage(
  tool: Buildah,
  containerfile: string,
  cache: string,
  note: BuildOptions["note"],
): Promise<{ name: string; base: string }> {
  const published = /^ARG NODE_IMAGE=(\S+)$/m.exec(containerfile)?.[1] ?? "";
  try {
    await tool("base", ["pull", "--policy", "ifnewer", published], 300_000);
    return { name: published, base: published };
  } catch {
    const os = readFileSync("/etc/os-release", "utf8");
    const suite = /^VERSION_CODENAME="?([\w-]+)/m.exec(os)?.[1] ?? "";
    const base = `the packages of ${suite} and this machine's Node.js ${process.version}, since ${published} could not be pulled`;
    note(`the base of the image is made of ${base}`);
    return { name: await localBase(tool, suite, cache), base };
  }
}

async function localBase(tool: Buildah, suite: string, cache: string): Promise<string> {
  const name = `${LOCAL_BASE}:${suite}-${process.version}`;
  if ((await tool("base", ["images", "--format", "{{.Name}}:{{.Tag}}"])).split("\n").includes(name)) return name;
  if (!isInstalled("debootstrap"))
    throw errors.CONTAINERS_IMPOSSIBLE("no registry is reached, and debootstrap is not installed");
  const npm = join(dirname(process.execPath), "../lib/node_modules/npm");
  if (!existsSync(npm)) throw errors.IMAGE_NOT_BUILT("base", `this machine's Node.js has no npm at ${npm}`);
  const archive = join(cache, "base.tar");
  const script = baseScript({ suite, npm, archive, at: join(cache, "base") });
  mkdirSync(join(cache, "base"), { recursive: true });
  const made = await runCommand(["unshare", "--mount", "sh", "-ec", script], {
    timeoutMs: BUILD_MS,
    env: buildEnvironment(),
  });
  if (made.code !== 0) throw errors.IMAGE_NOT_BUILT("debootstrap", lastLines(made.err || made.out));
  const container = await tool("base", ["from", "scratch"]);
  await tool("base", ["add", container, archive, "/"]);
  await tool("base", ["commit", "--rm", container, name]);
  rmSync(archive);
  return name;
}

/** In memory, which forgets it: a package manager waits for the disk after each file. */
function baseScript({ suite, npm, archive, at }: { suite: string; npm: string; archive: string; at: string }): string {
  const trusted = "/etc/ssl/certs/ca-certificates.crt";
  return [
    shellLine("mount", "-t", "tmpfs", "tmpfs", at),
    shellLine("debootstrap", "--variant=minbase", "--include=libstdc++6,ca-certificates", suite, `${at}/root`),
    shellLine("cd", `${at}/root`),
    "mkdir -p usr/local/bin usr/local/lib/node_modules usr/local/etc",
    shellLine("cp", "-L", process.execPath, "usr/local/bin/node"),
    shellLine("cp", "-aL", npm, "usr/local/lib/node_modules/npm"),
    "ln -s ../lib/node_modules/npm/bin/npm-cli.js usr/local/bin/npm",
    // What this machine trusts is trusted while the image is built here.
    `if [ -e ${trusted} ]; then cp ${trusted} etc/ssl/certs/; echo cafile=${trusted} > usr/local/etc/npmrc; fi`,
    "rm -rf var/cache/apt/archives/*.deb var/lib/apt/lists/*",
    `tar -cf ${quoted(archive)} .`,
  ].join("\n");
}

/** Names what the image is built from: the Containerfile, and everything it copies that the build reads. */
function hashOf(root: string, containerfile: string): string {
  const copies = [...containerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, words = ""]) =>
    words.split(" "),
  );
  const hash = createHash("sha256").update(containerfile);
  for (const path of [...new Set(copies)].sort().flatMap((copied) => filesBelow(root, copied)))
    hash
      .update(`${path}\0`)
      .update(readFileSync(join(root, path)))
      .update("\0");
  return hash.digest("hex");
}

const NOT_BUILT = /\.md$|\.test\./;

function filesBelow(root: string, path: string): string[] {
  if (!statSync(join(root, path)).isDirectory()) return NOT_BUILT.test(path) ? [] : [path];
  return readdirSync(join(root, path))
    .sort()
    .flatMap((name) => filesBelow(root, join(path, name)));
}

interface Descriptor {
  digest: string;
  annotations?: Record<string, string>;
}

function named(layout: string, reference: string): NamedImage {
  const read = (path: string) => JSON.parse(readFileSync(join(layout, path), "utf8")) as unknown;
  const blob = (digest: string) => read(join("blobs", digest.replace(":", "/")));
  const { manifests } = read("index.json") as { manifests: Descriptor[] };
  const found = manifests.find(({ annotations }) => annotations?.["org.opencontainers.image.ref.name"] === reference);
  if (!found) throw errors.IMAGE_NOT_BUILT("layout", `${reference} is not in ${layout}`);
  const { config } = blob(found.digest) as { config: Descriptor };
  const { config: set } = blob(config.digest) as { config?: { User?: string } };
  return { reference, digest: found.digest, user: set?.User ?? "" };
}

const KEPT_MS = 24 * 3_600_000;

/** Images of earlier states of the checkout: each is a copy of all its layers. One that is new may be another checkout's. */
function removeOld(cache: string): void {
  for (const name of readdirSync(cache)) {
    const path = join(cache, name);
    if (name.startsWith("image-") && statSync(path).mtimeMs < Date.now() - KEPT_MS)
      rmSync(path, { recursive: true, force: true });
  }
}

// A kernel of a Debian release, unpacked into the cache: its image, and those of its modules that we need.
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { mustRun, withPackages } from "../debian-suites.mjs";
import { ROOT } from "../fingerprint.mjs";
import { modulesInOrder } from "./module-order.mjs";

const CACHE = join(ROOT, "node_modules/.cache/kernels");
const ARCHITECTURES = { arm64: "arm64", x64: "amd64" };

/** What the data planes use that Debian does not build in. What a kernel has no module of, it has built in or knows no more. */
const MODULES = [
  ...[
    "veth",
    "vxlan",
    "ipip",
    "bridge",
    "dummy",
    "sch_ingress",
    "cls_bpf",
    "inet_diag",
    "tcp_diag",
    "udp_diag",
    "nf_tables",
    "nf_conntrack",
  ],
  ...[
    "nf_conntrack_netlink",
    "nft_ct",
    "nft_counter",
    "nft_log",
    "nft_limit",
    "nft_masq",
    "nft_nat",
    "nft_reject_inet",
  ],
  ...["nft_chain_nat", "nft_objref", "nft_fib_inet", "nf_log_syslog", "nf_reject_ipv4", "nf_reject_ipv6"],
];

/** `{ release, image, modules }`, paths in the cache, modules in the order they are loaded in; from the first suite that has it. */
export function kernelPackage(name, suites) {
  const folder = join(CACHE, name);
  const notes = join(folder, "kernel.json");
  if (existsSync(notes)) {
    const kept = JSON.parse(readFileSync(notes, "utf8"));
    if (String(kept.wanted) === String(MODULES)) return kept;
  }
  const problems = [];
  for (const suite of suites) {
    try {
      const kernel = withPackages(suite, [imageOf], (unpacked) => keep(unpacked, folder));
      writeFileSync(notes, JSON.stringify(kernel));
      return kernel;
    } catch (error) {
      problems.push(`${suite}: ${error.message}`);
    }
  }
  throw new Error(problems.join("; "));
}

/** The kernel for virtual machines: half as large, with everything we need in it. */
function imageOf(dependencies) {
  const flavour = `cloud-${ARCHITECTURES[process.arch] ?? process.arch}`;
  const image = dependencies(`linux-image-${flavour}`).find((name) => name.startsWith("linux-image-"));
  if (!image) throw new Error(`it has no linux-image-${flavour}`);
  return image;
}

function keep(unpacked, folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, "modules"), { recursive: true });
  const image = readdirSync(join(unpacked, "boot")).find((name) => name.startsWith("vmlinuz-"));
  copyFileSync(join(unpacked, "boot", image), join(folder, "vmlinuz"));
  const root = ["lib/modules", "usr/lib/modules"].map((path) => join(unpacked, path)).find(existsSync);
  const modules = modulesInOrder(MODULES, moduleFiles(root), (path) => readModule(path));
  const kept = modules.map(({ name, bytes }) => {
    const path = join(folder, "modules", `${name}.ko`);
    writeFileSync(path, bytes);
    return path;
  });
  return { wanted: MODULES, release: image.replace("vmlinuz-", ""), image: join(folder, "vmlinuz"), modules: kept };
}

function moduleFiles(root) {
  const paths = readdirSync(root, { recursive: true }).filter((path) => /\.ko(?:\.xz|\.zst|\.gz)?$/.test(path));
  return new Map(
    paths.map((path) => [
      basename(path)
        .replace(/\.ko.*/, "")
        .replaceAll("-", "_"),
      join(root, path),
    ]),
  );
}

function readModule(path) {
  const unpack = { xz: "xz", zst: "zstd", gz: "gzip" }[path.split(".").at(-1)];
  if (!unpack) return readFileSync(path);
  mustRun(unpack, ["-d", path], ROOT);
  return readFileSync(path.replace(/\.[a-z]+$/, ""));
}

import { readdirSync, readFileSync } from "node:fs";
import { uptime } from "node:os";
import { join } from "node:path";

/** What the kernel then says of itself: young enough that "an hour ago" is before the machine started. */
const UPTIME_SECONDS = 60;

/** A zone that is neither whole hours from UTC nor near it, and the plainest locale. */
const SETTINGS = { CI: "true", TZ: "Pacific/Chatham", LC_ALL: "C", TERM: "dumb" };

/** Programs and libraries that a test may use but must not need; `tools/setup.mjs` installs their packages where it can. */
const OPTIONAL = /^(?:kubectl|openssl|etcd.*|nft|libnftables\.so.*|(?:ip6?|x)tables.*|clang.*|cpio)$/;
const WHERE = ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/usr/lib", "/usr/lib64"];

/**
 * Runs as root in namespaces of its own, with the arguments it is given as the command. It makes what a machine has that has just
 * started: empty /run and BPF file system, a name nobody resolves, loopback alone, no IPv6 address. The control groups stay, because
 * programs attached to them must be the kernel's.
 */
const ENTER = `
set -eu
umask 077
hostname fresh-machine
mount -t tmpfs -o mode=755 fresh-run /run
mkdir /run/kept /run/usr
mount --rbind /sys/fs/cgroup /run/kept
mount -t sysfs sysfs /sys
mount --rbind /run/kept /sys/fs/cgroup
mount -t bpf bpf /sys/fs/bpf
echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6
echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
ip link set lo up
if [ -n "$FRESH_REMOVES" ]; then
  mkdir /run/usr/upper /run/usr/work
  chmod 755 /run/usr/upper
  mount -t overlay -o lowerdir=/usr,upperdir=/run/usr/upper,workdir=/run/usr/work overlay /usr
  rm -rf $FRESH_REMOVES
fi
unset FRESH_REMOVES
exec "$@"
`;

/**
 * The command that runs `command` as on a machine that started a minute ago.
 * @param {{ path: string, home: string, removes?: string[], command: string[] }} machine
 */
export function freshCommand({ path, home, removes = [], command }) {
  const offset = String(UPTIME_SECONDS - Math.floor(kernelUptime()));
  const namespaces = ["--mount", "--uts", "--net", "--time", "--monotonic", offset, "--boottime", offset];
  return {
    program: "unshare",
    args: [...namespaces, "--fork", "--kill-child=SIGTERM", "sh", "-c", ENTER, "fresh", ...command],
    env: { ...SETTINGS, PATH: path, HOME: home, FRESH_REMOVES: removes.join(" ") },
  };
}

/** Where this machine has the programs that tests must not need. */
export function optionalPrograms(read = names) {
  const folders = [
    ...WHERE,
    ...["/usr/lib"].flatMap((lib) =>
      read(lib)
        .filter((name) => name.includes("-linux-"))
        .map((name) => join(lib, name)),
    ),
  ];
  return folders.flatMap((folder) =>
    read(folder)
      .filter((name) => OPTIONAL.test(name))
      .map((name) => join(folder, name)),
  );
}

/** Offsets of a time namespace count from the kernel's start, also where this process is in another one already. */
function kernelUptime() {
  const [, offset] = /^boottime\s+(-?\d+)/m.exec(readFileSync("/proc/self/timens_offsets", "utf8"));
  return uptime() - Number(offset);
}

function names(folder) {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return [];
    throw error;
  }
}

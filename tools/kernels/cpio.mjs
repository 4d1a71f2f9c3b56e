// The archive a kernel unpacks as its first file system: "newc" cpio, which is a header of hexadecimal numbers before each file.
const MODE = { file: 0o100755, directory: 0o040755, device: 0o020600, link: 0o120777 };

/** Entries: `{ path, kind, bytes?, device? }`; folders of files are added by themselves. Returns the archive in pieces, to be written in turn. */
export function cpio(entries) {
  const pieces = [];
  let inode = 1;
  for (const entry of [...withFolders(entries), { path: "TRAILER!!!", kind: "file" }]) {
    const bytes = entry.bytes ?? Buffer.alloc(0);
    const name = Buffer.from(`${entry.path}\0`);
    const [major = 0, minor = 0] = entry.device ?? [];
    const fields = [inode++, MODE[entry.kind], 0, 0, 1, 0, bytes.length, 0, 0, major, minor, name.length, 0];
    const header = `070701${fields.map((field) => field.toString(16).padStart(8, "0")).join("")}`;
    pieces.push(padded(Buffer.concat([Buffer.from(header), name])), padded(bytes));
  }
  return pieces;
}

function withFolders(entries) {
  const folders = new Set();
  for (const { path } of entries) {
    const parts = path.split("/").slice(0, -1);
    for (const depth of parts.keys()) folders.add(parts.slice(0, depth + 1).join("/"));
  }
  const own = new Set(entries.map(({ path }) => path));
  const missing = [...folders].filter((path) => !own.has(path)).sort();
  return [...missing.map((path) => ({ path, kind: "directory" })), ...entries];
}

function padded(bytes) {
  const rest = bytes.length % 4;
  return rest === 0 ? bytes : Buffer.concat([bytes, Buffer.alloc(4 - rest)]);
}

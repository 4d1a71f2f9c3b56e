/**
 * The wanted modules and what they depend on, each after what it needs. Packages do not have the list that `depmod` makes; but each module
 * says in its file what it needs. `files` are paths by module name; names that are not in it are built in, or not of this kernel.
 */
export function modulesInOrder(wanted, files, read) {
  const done = new Map();
  const visit = (name) => {
    const path = files.get(name);
    if (!path || done.has(name)) return;
    const bytes = read(path);
    // Before its dependencies, so that a circle, which the kernel could not load either, ends.
    done.set(name, undefined);
    for (const needed of dependenciesOf(bytes)) visit(needed);
    done.delete(name);
    done.set(name, { name, bytes });
  };
  for (const name of wanted) visit(name);
  return [...done.values()];
}

/** From the section `.modinfo`: texts that end with a zero byte, `depends=a,b` among them. */
export function dependenciesOf(bytes) {
  const at = bytes.indexOf("\0depends=");
  if (at < 0) return [];
  const start = at + "\0depends=".length;
  const text = bytes.toString("latin1", start, bytes.indexOf(0, start));
  return text === "" ? [] : text.replaceAll("-", "_").split(",");
}

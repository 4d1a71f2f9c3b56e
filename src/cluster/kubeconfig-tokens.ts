import { open, readFile, realpath, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isMap, isSeq, parseDocument, type YAMLMap } from "yaml";
import type { OidcProvider } from "./connection.ts";
import { errors } from "./errors.ts";

/**
 * Writes new tokens into the kubeconfig they came from, all else kept as it is. The file is replaced whole, readable by its owner alone, under the lock file
 * that kubectl uses.
 */
export async function writeOidcTokens(
  { file, user }: OidcProvider,
  tokens: { idToken: string; refreshToken: string },
): Promise<void> {
  try {
    const path = await realpath(file);
    const lock = await open(`${path}.lock`, "wx", 0o600);
    try {
      await replaceFile(path, withTokens(await readFile(path, "utf8"), user, tokens));
    } finally {
      await lock.close();
      await rm(`${path}.lock`, { force: true });
    }
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    throw errors
      .OIDC_NOT_SAVED(file, code === "EEXIST" ? "another program writes it (its .lock exists)" : message)
      .from(cause);
  }
}

function withTokens(text: string, user: string, tokens: { idToken: string; refreshToken: string }): string {
  const document = parseDocument(text);
  const users = document.get("users");
  const entry = isSeq(users)
    ? users.items.find((item): item is YAMLMap => isMap(item) && item.get("name") === user)
    : undefined;
  if (entry === undefined) throw new Error(`it has no user "${user}" any more`);
  entry.setIn(["user", "auth-provider", "config", "id-token"], tokens.idToken);
  entry.setIn(["user", "auth-provider", "config", "refresh-token"], tokens.refreshToken);
  return document.toString({ lineWidth: 0 });
}

async function replaceFile(path: string, text: string): Promise<void> {
  const next = join(dirname(path), `.${process.pid}-${Date.now()}.kubeconfig`);
  const written = await open(next, "wx", 0o600);
  try {
    await written.writeFile(text);
    await written.sync();
  } finally {
    await written.close();
  }
  try {
    await rename(next, path);
  } catch (error) {
    await rm(next, { force: true });
    throw error;
  }
}

import { VERSION } from "../../api/release.ts";
import { print } from "../printer.ts";
import type { Session } from "../session.ts";

export async function version(session: Session, options: { client?: true }): Promise<void> {
  const client = { version: VERSION, node: process.version, platform: `${process.platform}/${process.arch}` };
  const server = options.client ? undefined : await (await import("../server-version.ts")).serverVersion(session);
  const rows = [["vendorctl", client.version], ...(server ? [["API server", server.gitVersion]] : [])];
  await print(session, server ? { client, server } : { client }, () => ({ columns: ["PROGRAM", "VERSION"], rows }));
}

import { plainListener } from "../../apiserver/http.ts";
import type { Program } from "../../cluster/program.ts";
import { healthServer } from "../../kit/health-server.ts";
import { readFlowUIConfig } from "../config.ts";
import { readPageFiles } from "./page-files.ts";
import { NO_USER, PageFront } from "./page-front.ts";
import { readersRights } from "./page-rights.ts";

/** `vendor flow-ui`: the page, and the way from it to the API server with the reader's own token. */
export const flowUIProgram: Program = async (world) => {
  const { env, log, signal } = world;
  const { port, healthHost, healthPort, version, notifications } = readFlowUIConfig(env);
  const files = readPageFiles();
  const transport = world.transport();
  try {
    const about = { cluster: "", release: version, namespace: "default", notifications };
    const front = new PageFront({ files, rights: readersRights(), transport, about, log });
    await world.listen(
      plainListener(front, () => NO_USER),
      port,
    );
    await world.listen(healthServer({ log }), healthPort, healthHost);
    log.info({ port, healthPort }, "serving the flow UI");
    if (!signal.aborted)
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  } finally {
    transport.close();
  }
};

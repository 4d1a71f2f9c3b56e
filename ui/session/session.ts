import { openPath } from "../api/flows-api.ts";

/** What the server of the page says of who reads, and of what. */
export interface Session {
  cluster: string;
  /** Absent: the API server does not say. */
  user?: string;
  release: string;
  /** The page asks for a token. */
  signIn: boolean;
  namespace: string;
  /** False: the reader may list flows of namespaces alone. */
  wholeCluster: boolean;
  /** New denials are announced (default: true). */
  notifications?: boolean;
  /** Runs of vendorctl can be asked for (default: false). */
  runs?: boolean;
}

/** Rejects with an `ApiRefusal`; 401: nobody is signed in, or the token is not right. */
export async function openSession(token: string): Promise<Session> {
  const response = await openPath("/session", token, new AbortController().signal);
  return (await response.json()) as Session;
}

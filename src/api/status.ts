/** The `Status` object a Kubernetes API answers failures with, as an error both server and client speak. */
export interface StatusCause {
  reason?: string;
  message?: string;
  field?: string;
}

export interface StatusDetails {
  name?: string;
  group?: string;
  kind?: string;
  uid?: string;
  causes?: StatusCause[];
  retryAfterSeconds?: number;
}

export interface Status {
  kind: "Status";
  apiVersion: "v1";
  metadata: Record<string, unknown>;
  status: "Success" | "Failure";
  message?: string;
  reason?: string;
  details?: StatusDetails;
  code?: number;
}

export class StatusError extends Error {
  readonly status: Status;

  constructor(code: number, reason: string, message: string, details?: StatusDetails) {
    super(message);
    this.name = "StatusError";
    this.status = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, code };
    if (details) this.status.details = details;
  }

  get code(): number {
    return this.status.code ?? 500;
  }

  get reason(): string {
    return this.status.reason ?? "";
  }
}

/** Programs of other people that a step hands work to, such as the chart tool. */
export interface OtherTools {
  /** Where the program is, or undefined where it is not installed. */
  find(program: string): Promise<string | undefined>;
  run(
    program: string,
    args: readonly string[],
    options?: { input?: string; signal?: AbortSignal },
  ): Promise<ToolResult>;
}

export interface ToolResult {
  exitCode: number;
  stdout: string;
  stderr: string;
}

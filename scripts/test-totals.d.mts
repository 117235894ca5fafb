// The types of test-totals.mjs, for its test.

/** The part of vitest's JSON report that is looked at. */
export interface TestReport {
  readonly success: boolean;
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly message?: string;
    readonly assertionResults: readonly {
      readonly status: string;
      readonly fullName?: string;
      readonly failureMessages?: readonly string[];
    }[];
  }[];
}

/** See test-totals.mjs. */
export function countTests(report: TestReport): {
  passed: number;
  failed: number;
  skipped: number;
  complaints: string[];
};

/** See test-totals.mjs. */
export function describeFailures(report: Pick<TestReport, "testResults">): string[];

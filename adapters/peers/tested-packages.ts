/** A version of a package that taskchart is tested with, exactly. */
export interface TestedVersion {
  readonly version: string
  /** The oldest Node that it runs on, if that is newer than taskchart's own. */
  readonly node?: string
  /** Packages of this version's generation, which an agent uses beside it, exactly. */
  readonly beside?: Readonly<Record<string, string>>
}

/** Versions of a package that are known to fail on some versions of Node. */
export interface KnownFailure {
  /** A range of comparators, such as `>=13 <14`. */
  readonly versions: string
  readonly node: string
  /** The failure, as the rest of a sentence that begins with "on Node 20". */
  readonly what: string
}

/** An optional package, and what is known about it. */
export interface TestedPackage {
  /**
   * The oldest and the newest version that are tested. All between them, and of the newest's major, count as tested.
   */
  readonly tested: readonly [TestedVersion, ...TestedVersion[]]
  readonly failures?: readonly KnownFailure[]
}

/**
 * The optional packages and their tested versions. The peers of package.json are these, each from its oldest version on
 * and without an end: a newer major never blocks an install. `.ci/packages` runs the oldest and the newest versions.
 */
export const TESTED_PACKAGES = {
  '@a2a-js/sdk': { tested: [{ version: '1.3.0' }] },
  '@bufbuild/protobuf': { tested: [{ version: '2.10.2' }, { version: '2.17.0' }] },
  '@grpc/grpc-js': { tested: [{ version: '1.11.0' }, { version: '1.14.7' }] },
  '@modelcontextprotocol/server': { tested: [{ version: '2.4.0' }] },
  '@opentelemetry/api': {
    tested: [
      { version: '1.9.0', beside: { '@opentelemetry/sdk-trace-base': '2.0.0' } },
      { version: '1.9.1', beside: { '@opentelemetry/sdk-trace-base': '2.12.1' } }
    ]
  },
  '@statelyai/inspect': { tested: [{ version: '0.7.2' }] },
  '@xstate/graph': { tested: [{ version: '3.0.4' }] },
  ai: {
    tested: [
      { version: '6.0.0', beside: { '@ai-sdk/openai': '3.0.0' } },
      { version: '7.0.173', node: '22.0.0', beside: { '@ai-sdk/openai': '4.0.118', '@ai-sdk/otel': '1.0.173' } }
    ]
  },
  'better-sqlite3': {
    tested: [{ version: '12.0.0' }, { version: '13.2.0', node: '22.0.0' }],
    failures: [
      { versions: '>=13', node: '<22', what: 'it crashes the process' },
      { versions: '<13', node: '>=24', what: 'it ends the process when its thread ends' }
    ]
  },
  elkjs: { tested: [{ version: '0.12.1' }] },
  'fast-check': { tested: [{ version: '4.0.0' }, { version: '4.11.0' }] },
  jose: { tested: [{ version: '6.0.0' }, { version: '6.2.18' }] },
  pg: { tested: [{ version: '8.13.0' }, { version: '8.23.1' }] },
  react: {
    tested: [
      { version: '18.2.0', beside: { 'react-dom': '18.2.0' } },
      { version: '19.3.1', beside: { 'react-dom': '19.3.1' } }
    ]
  },
  tsx: { tested: [{ version: '4.19.0' }, { version: '4.23.15' }] },
  typescript: { tested: [{ version: '5.9.2' }, { version: '7.0.2' }] }
} as const satisfies Readonly<Record<string, TestedPackage>>

/** The name of a package of the table. */
export type PackageName = keyof typeof TESTED_PACKAGES

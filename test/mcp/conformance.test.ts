import { mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import agent from './agent.ts'
import { NO_MCP_PACKAGES, runProgram, servedAgent } from './packages.ts'

/** What the suite finds for a revision. */
interface Expected {
  /** The scenarios of which every check passes. */
  readonly whole: readonly string[]
  /** Checks that do not pass, as `scenario:check`, by the reason. All other checks of their scenarios pass. */
  readonly byDesign: Readonly<Record<string, readonly string[]>>
}

/** Reasons of both revisions. */
const NOT_OFFERED = {
  'Prompts and completions are not offered.': [
    'completion-complete:completion-complete',
    'prompts-get-embedded-resource:prompts-get-embedded-resource',
    'prompts-get-simple:prompts-get-simple',
    'prompts-get-with-args:prompts-get-with-args',
    'prompts-get-with-image:prompts-get-with-image',
    'prompts-list:prompts-list'
  ],
  'The resources are the artifacts of tasks. There are none besides, and no list of them.': [
    'resources-read-binary:resources-read-binary',
    'resources-read-text:resources-read-text',
    'resources-templates-read:resources-templates-read'
  ],
  'All tools have the input schema of the agent, so none has the one that is asked for.': [
    'json-schema-2020-12:json-schema-2020-12-tool-found'
  ]
}

const REVISIONS: Readonly<Record<string, Expected>> = {
  '2026-07-28': {
    whole: [
      'dns-rebinding-protection',
      'http-header-validation',
      'input-required-result-missing-input-response',
      'input-required-result-multi-round',
      'input-required-result-request-state',
      'input-required-result-result-type',
      'input-required-result-tampered-state',
      'input-required-result-unsupported-methods',
      'input-required-result-validate-input',
      'resources-list',
      'sep-2164-resource-not-found',
      'tasks-capability-negotiation',
      'tasks-dispatch-and-envelope',
      'tasks-request-headers',
      'tasks-request-state-removal',
      'tasks-wire-fields',
      'tools-call-audio',
      'tools-call-embedded-resource',
      'tools-call-error',
      'tools-call-image',
      'tools-call-mixed-content',
      'tools-call-simple-text',
      'tools-call-with-progress',
      'tools-list'
    ],
    byDesign: {
      ...NOT_OFFERED,
      'Lists of prompts, and of resources that anybody may read, have no hints for caches, since there are none.': [
        'caching:sep-2549-prompts-list-caching-hints',
        'caching:sep-2549-resources-read-caching-hints',
        'input-required-result-non-tool-request:sep-2322-non-tool-incomplete'
      ],
      'The tools and prompts of an agent do not change, so nobody is notified.': [
        'server-stateless:sep-2575-server-sends-prompts-list-changed-on-subscription',
        'server-stateless:sep-2575-server-sends-tools-list-changed-on-subscription'
      ],
      'An agent asks its client for forms and URLs alone: neither sampling nor roots.': [
        'input-required-result-basic-list-roots:sep-2322-list-roots-incomplete',
        'input-required-result-basic-sampling:sep-2322-sampling-incomplete',
        'input-required-result-capability-check:sep-2322-respect-client-capabilities',
        'server-stateless:sep-2575-missing-capability-http-400',
        'server-stateless:sep-2575-server-rejects-undeclared-capability'
      ],
      'The key of a question is the id of the message that asks, not a name such as "user_name".': [
        'input-required-result-basic-elicitation:sep-2322-elicitation-incomplete',
        'input-required-result-ignore-extra-params:sep-2322-ignore-unexpected-params'
      ],
      'A task has one open question at a time.': [
        'input-required-result-multiple-input-requests:sep-2322-multiple-inputs-incomplete',
        'tasks-mrtr-input:tasks-mrtr-partial-fulfillment'
      ],
      'Work that throws is FAILED, which is "completed" with isError: the state "failed" hides the reason in hosts.': [
        'tasks-lifecycle:sep-2663-tasks-get-status-failed'
      ],
      'Before its task an agent asks only whether an offer is accepted.': [
        'tasks-mrtr-composition:sep-2663-mrtr-synchronous-before-task-creation'
      ],
      'No tool requires the extension for tasks: without it a call waits.': [
        'tasks-required-task-error:sep-2663-server-returns-missing-capability-when-required'
      ],
      'No argument of a tool is a header (x-mcp-header).': [
        'http-custom-header-server-validation:sep-2243-server-decode-base64',
        'http-custom-header-server-validation:sep-2243-server-no-xmcp-tool',
        'http-custom-header-server-validation:sep-2243-server-reject-invalid-param-chars',
        'http-custom-header-server-validation:sep-2243-server-reject-param-mismatch',
        'http-custom-header-server-validation:sep-2243-server-validate-param-match'
      ],
      'The suite does not check this yet.': [
        'server-sse-multiple-streams:server-sse-streams-functional',
        'tasks-status-notifications:tasks-status-notifications'
      ]
    }
  },
  '2025-11-25': {
    whole: [
      'dns-rebinding-protection',
      'ping',
      'resources-list',
      'tools-call-audio',
      'tools-call-embedded-resource',
      'tools-call-error',
      'tools-call-image',
      'tools-call-mixed-content',
      'tools-call-simple-text',
      'tools-call-with-progress',
      'tools-list'
    ],
    byDesign: {
      ...NOT_OFFERED,
      'Older versions over HTTP have no sessions, so their clients cannot be asked, and no stream is resumed.': [
        'elicitation-sep1034-defaults:elicitation-sep1034-general',
        'elicitation-sep1330-enums:elicitation-sep1330-general',
        'server-initialize:server-session-id-visible-ascii',
        'server-session-lifecycle:server-session-lifecycle-skipped',
        'server-sse-multiple-streams:server-sse-multiple-streams-session',
        'server-sse-polling:incoming-response',
        'server-sse-polling:outgoing-request',
        'server-sse-polling:server-sse-disconnect-resume',
        'server-sse-polling:server-sse-polling-session',
        'server-sse-polling:server-sse-priming-event',
        'server-sse-polling:server-sse-retry-field',
        'server-sse-polling:stream-closed',
        'tools-call-elicitation:tools-call-elicitation',
        'tools-call-sampling:tools-call-sampling'
      ],
      'Logging and subscriptions to resources are not offered.': [
        'logging-set-level:logging-set-level',
        'resources-subscribe:resources-subscribe',
        'resources-unsubscribe:resources-unsubscribe',
        'tools-call-with-logging:tools-call-with-logging'
      ]
    }
  }
}

interface Check {
  readonly id: string
  readonly status: string
  readonly errorMessage?: string
}

for (const [revision, { whole, byDesign }] of Object.entries(REVISIONS)) {
  await t.test(`the conformance suite of MCP ${revision} finds what is listed`, { skip: NO_MCP_PACKAGES }, async t => {
    const url = await servedAgent(t, agent)
    const found = await runSuite(t, url, '--requirements', revision)
    const listed = Object.values(byDesign).flat()
    const scenarios = new Set([...whole, ...listed.map(scenarioOf)])
    t.same([...found.keys()].toSorted(), [...scenarios].toSorted(), 'all scenarios are listed')
    for (const [scenario, first] of found) {
      const expected = listed.filter(id => scenarioOf(id) === scenario).toSorted()
      const name = expected.length === 0 ? `${scenario} passes` : `${scenario} passes, apart from what is listed`
      let checks = first
      // Some checks wait half a second for an answer, which may be too short on a busy machine.
      if (missedIn(scenario, first).join() !== expected.join())
        checks = (await runSuite(t, url, '--scenario', scenario, '--spec-version', revision)).get(scenario) ?? []
      const errors = checks.map(({ id, errorMessage = '' }) => `${id}: ${errorMessage}`)
      t.same(missedIn(scenario, checks), expected, name, { errors })
    }
  })
}

function scenarioOf(id: string): string {
  return id.slice(0, id.indexOf(':'))
}

/** The checks of a scenario that did not pass, as `scenario:check`. */
function missedIn(scenario: string, checks: readonly Check[]): string[] {
  const missed = checks.filter(({ status }) => status !== 'SUCCESS')
  return [...new Set(missed.map(({ id }) => `${scenario}:${id}`))].toSorted()
}

/** Runs scenarios against a server, and gives the checks of each. */
async function runSuite(t: Test, url: string, ...which: readonly string[]): Promise<Map<string, readonly Check[]>> {
  const folder = mkdtempSync(join(t.testdir({}), 'results-'))
  await runProgram('conformance', 'server', '--url', url, ...which, '-o', folder)
  const runs = readdirSync(folder).map(name => {
    const scenario = name.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT.*$/, '')
    return [scenario, JSON.parse(readFileSync(join(folder, name, 'checks.json'), 'utf8')) as Check[]] as const
  })
  return new Map(runs)
}

import { deflateRawSync, inflateRawSync } from 'node:zlib'

const TASK = '"taskId":"","contextId":""'
const CHART = '{"status":"active","value":{"active":{"started":"inputRequired"}},"historyValue":{},"context":{'

/** What the texts of stored contexts are full of, and need not hold themselves: as it stands there, snapshots within strings. */
const dictionary = Buffer.from(
  JSON.stringify({
    snapshot: `{"format":1,"status":"active","value":"idle","historyValue":{},"context":{"negotiations":[]},"children":{}}`,
    rows: [{ taskId: '', generation: 3, state: 'TASK_STATE_INPUT_REQUIRED', snapshot: `${CHART}${TASK},"queue":[],"restarts":[]},"children":{"work":{"snapshot":{"status":"active","value":"","historyValue":{},"context":{},"children":{}},"src":"work","syncSnapshot":false}}}` }],
    messages: [{ message: { messageId: '', role: 'ROLE_USER', parts: [{ text: '' }], taskId: '', contextId: '' }, taskId: '', generation: 0 }],
    logs: [['TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING', 'TASK_STATE_INPUT_REQUIRED'].map(state => ({
      taskId: '', generation: 1,
      update: { statusUpdate: { taskId: '', contextId: '', status: { state, message: { messageId: '', contextId: '', taskId: '', role: 'ROLE_AGENT', parts: [{ text: '' }] }, timestamp: '2026-01-01T00:00:00.000Z' } } }
    }))],
    journal: []
  })
)

/** A JSON value as a text that takes a fraction of the memory. */
export function fold(value: unknown): string {
  return deflateRawSync(JSON.stringify(value), { dictionary }).toString('latin1')
}

/** The value that was folded. */
export function unfold(folded: string): unknown {
  return JSON.parse(inflateRawSync(Buffer.from(folded, 'latin1'), { dictionary }).toString())
}

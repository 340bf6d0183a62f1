import { readApiKey } from '../api-key.ts'
import { readArguments } from '../arguments.ts'
import { EXIT, usageError, type Io } from '../command.ts'
import { withAgent } from '../talk/agent-connection.ts'
import { stateText } from '../text/state-text.ts'
import { jsonLine } from '../text/terminal-text.ts'

const OPTIONS = { db: { type: 'string' }, url: { type: 'string' }, 'api-key': { type: 'string' }, 'credential-origin': { type: 'string', multiple: true }, json: { type: 'boolean' } } as const

/** `taskchart tasks cancel`: has an agent cancel a task, and tells the state that it has then. */
export async function cancelTask(args: readonly string[], io: Io): Promise<number> {
  const { values: { db, url, 'api-key': key, 'credential-origin': credentialOrigins, json }, positionals: [id] } = readArguments(args, OPTIONS, ['TASK'])
  if (db !== undefined) throw usageError('Nothing is canceled in a file: the server that has it would not hear of it. Cancel through the server, with --url URL.')
  if (url === undefined) throw usageError('--url URL is missing.')
  return withAgent({ url, apiKey: readApiKey(key), credentialOrigins }, io, async client => {
    const task = await client.cancelTask({ id }, { signal: io.signal })
    io.stdout.write(json ? jsonLine(task) : `${stateText(task.status.state)}\n`)
    return EXIT.ok
  })
}

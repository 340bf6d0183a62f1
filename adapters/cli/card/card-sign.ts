import { AgentCardSchema, type AgentCard } from '../../../machines/protocol/card.ts'
import { decode } from '../../../machines/protocol/codec/decode.ts'
import { createRuntime } from '../../../runtime/runtime.ts'
import { interfacesAt } from '../../entry/interfaces.ts'
import { readArguments } from '../arguments.ts'
import { EXIT, usageError, type Io } from '../command.ts'
import { loadAgent } from '../load-agent.ts'
import { jsonIn, signerFrom, textIn } from './key-files.ts'

const OPTIONS = { key: { type: 'string' }, kid: { type: 'string' }, alg: { type: 'string' }, jku: { type: 'string' }, url: { type: 'string' } } as const

/** `taskchart card sign`: writes a card with one signature more. */
export async function signCard(args: readonly string[], { stdout, cwd }: Io): Promise<number> {
  const { values: { key, url, ...options }, positionals: [file] } = readArguments(args, OPTIONS, ['CARD.json|AGENT.ts|js'])
  if (key === undefined) throw usageError('--key is missing: the file with the private key, PEM or JWK.')
  const sign = await signerFrom(key, cwd, options)
  const card = file.endsWith('.json') ? await cardIn(file, cwd, url) : await cardOf(file, cwd, url)
  stdout.write(`${JSON.stringify(await sign(card), undefined, 2)}\n`)
  return EXIT.ok
}

async function cardIn(file: string, cwd: string, url: string | undefined): Promise<AgentCard> {
  if (url !== undefined) throw usageError('--url is for the card of an agent that is in a module. A card in a file says its addresses itself.')
  return decode(AgentCardSchema, jsonIn(await textIn(file, cwd), file), 'card')
}

/** The card that the agent of a module has where `taskchart serve` serves it at this address. */
async function cardOf(file: string, cwd: string, url: string | undefined): Promise<AgentCard> {
  if (url === undefined || !URL.canParse(url) || !/^(?:http|ws)s?:/.test(url)) throw usageError('--url is missing: the address at which the agent is served, such as https://agent.example/.')
  const { agent, authenticate } = await loadAgent(file, cwd)
  const runtime = createRuntime({ agent, ...(authenticate && { authenticate }) })
  try {
    return runtime.agentCard(interfacesAt(url, { webSocket: true, http: true, dialects: [] }))
  } finally {
    await runtime.close()
  }
}

import type { AgentCapabilities, AgentCard, AgentInterface, AgentSkill } from '../../machines/protocol/card.ts'
import { fetchCard } from '../client/discovery.ts'
import { readArguments } from './arguments.ts'
import { EXIT, usageError, type Command, type Io } from './command.ts'
import { jsonLine, oneLine, plain } from './terminal-text.ts'

/** `taskchart card`: shows an agent's card. */
export const cardCommand: Command = {
  name: 'card',
  summary: "show an agent's card: who it is, where it is and what it can do",
  usage: 'taskchart card URL [--json]',
  details: `URL is the address of the card, of the agent's host, or of the agent.

  --json          write the card as one line of JSON

Exit codes: 0 shown, 1 an error, 2 wrong usage.
`,
  run
}

async function run(args: readonly string[], { stdout, signal }: Io): Promise<number> {
  const { values: { json }, positionals: [url] } = readArguments(args, { json: { type: 'boolean' } }, ['URL'])
  const card = await fetchCard(url, signal).catch(error => {
    throw error instanceof TypeError ? usageError(error.message) : error
  })
  stdout.write(json ? jsonLine(card) : plain(readable(card)))
  return EXIT.ok
}

function readable({ name, version, description, supportedInterfaces, capabilities, skills }: AgentCard): string {
  return [
    `${oneLine(name)} ${oneLine(version)}`,
    ...(description === '' ? [] : [description]),
    ...section('Interfaces', supportedInterfaces.map(interfaceLine)),
    ...section('Capabilities', capabilityLines(capabilities)),
    ...section('Skills', skills.flatMap(skillLines)),
    ''
  ].join('\n')
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ['', title, ...lines.map(line => `  ${line}`)]
}

function interfaceLine({ url, protocolBinding, protocolVersion }: AgentInterface): string {
  return oneLine(`${url}  A2A ${protocolVersion}, ${protocolBinding}`)
}

function capabilityLines({ streaming, pushNotifications, extendedAgentCard, extensions = [] }: AgentCapabilities): string[] {
  return [
    ...(streaming ? ['streaming'] : []),
    ...(pushNotifications ? ['push notifications'] : []),
    ...(extendedAgentCard ? ['extended card'] : []),
    ...extensions.map(({ uri, required }) => oneLine(`extension ${uri}${required ? ' (required)' : ''}`))
  ]
}

function skillLines({ name, description, examples = [] }: AgentSkill): string[] {
  const about = description === '' ? name : `${name}: ${description}`
  return [oneLine(about), ...examples.map(example => `  "${oneLine(example)}"`)]
}

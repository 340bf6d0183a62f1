import type { AgentCapabilities, AgentCard, AgentInterface, AgentSkill } from '../../../machines/protocol/card.ts'
import { fetchCard } from '../../client/card/discovery.ts'
import { readArguments } from '../arguments.ts'
import { EXIT, usageError, type Command, type Io } from '../command.ts'
import { jsonLine, oneLine, plain } from '../text/terminal-text.ts'
import { signCard } from './card-sign.ts'
import { verifyCard } from './card-verify.ts'

/** `taskchart card`: shows an agent's card, or signs or verifies one. */
export const cardCommand: Command = {
  name: 'card',
  summary: "show an agent's card: its name, address and abilities; sign or verify a card",
  usage: 'taskchart card URL [--json], taskchart card verify URL|CARD.json --keys KEYS, or taskchart card sign CARD.json|AGENT.ts|js --key FILE',
  details: `URL is the address of the card, of the agent's host, or of the agent. A card of A2A 0.3 is shown in the form of 1.0.

  --json          write the card as one line of JSON

verify says whether a card is to be trusted: whether one of its signatures is valid for one of these keys and for this
content. Keys and key addresses in the card are ignored.

  --keys KEYS     the public keys that are trusted: a file with a JWK set, a JWK or PEM, or the https: address of a JWK set
  --json          write one line of JSON, { name, kid, alg, left }; left are members that were not signed

sign writes the card with one more signature to stdout. An agent that is served signs its card itself: taskchart serve AGENT
--card-key FILE.

  --key FILE      the private key, PEM or JWK: EC, RSA or Ed25519
  --kid ID        the name of the key. Default that of the JWK, else the thumbprint of the key
  --alg ALG       the algorithm. Default that of the JWK, else ES256, ES384, ES512, RS256 or EdDSA, as fits the key
  --jku URL       the address of the public keys, for information
  --url URL       the address at which the agent of a module is served

Both need the packages @a2a-js/sdk and jose.

Exit codes: 0 shown, signed, or to be trusted; 1 not to be trusted, or an error; 2 wrong usage.
`,
  run: (args, io) => {
    const [first, ...others] = args
    if (first === 'sign') return signCard(others, io)
    return first === 'verify' ? verifyCard(others, io) : show(args, io)
  }
}

async function show(args: readonly string[], { stdout, signal }: Io): Promise<number> {
  const { values: { json }, positionals: [url] } = readArguments(args, { json: { type: 'boolean' } }, ['URL'])
  const card = await fetchCard(url, { signal }).catch(error => {
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

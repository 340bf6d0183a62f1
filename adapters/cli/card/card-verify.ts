import { foundCard } from '../../client/card/discovery.ts'
import { readArguments } from '../arguments.ts'
import { EXIT, usageError, type Io } from '../command.ts'
import { jsonLine, oneLine } from '../text/terminal-text.ts'
import { jsonIn, textIn, verifierFrom } from './key-files.ts'

/** `taskchart card verify`: tells whether a card is to be trusted. */
export async function verifyCard(args: readonly string[], { stdout, signal, cwd }: Io): Promise<number> {
  const { values: { keys, json }, positionals: [place] } = readArguments(args, { keys: { type: 'string' }, json: { type: 'boolean' } }, ['URL|CARD.json'])
  if (keys === undefined) throw usageError('--keys is missing: the file, or the address, of the public keys that are trusted.')
  const verify = await verifierFrom(keys, cwd)
  const found = /^(?:http|ws)s?:/i.test(place) ? await foundCard(place, { signal }) : jsonIn(await textIn(place, cwd), place)
  const { card: { name }, kid, alg, left } = await verify(found, place)
  const but = left.length > 0 ? `, but for ${left.join(' and ')}` : ''
  stdout.write(json ? jsonLine({ name, kid, alg, left }) : `${oneLine(`The card of ${name} is to be trusted: the key ${JSON.stringify(kid)} (${alg}) has signed it${but}.`)}\n`)
  return EXIT.ok
}

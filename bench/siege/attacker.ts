import { attack, type AttackOptions } from './attack.ts'
import type { Told } from './tally.ts'

/** A message of the attacker's process: an attack begins, or, at the end, the counts of all attacks. */
export type AttackerTold = { readonly connection: number; readonly name: string } | { readonly told: readonly Told[] }

/**
 * The process of the attacker, whose argument is its options as JSON. It attacks until its parent sends a message, then
 * sends the counts.
 */
const end = new AbortController()
const tell = (told: AttackerTold) => process.send?.(told)
process.on('disconnect', () => process.exit()).on('message', () => end.abort())
const told = await attack(JSON.parse(process.argv[2] ?? '') as AttackOptions, end.signal, (connection, name) =>
  tell({ connection, name })
)
tell({ told })

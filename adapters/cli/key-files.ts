import { createPrivateKey, createPublicKey } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { isObject } from '../../machines/protocol/codec/json.ts'
import type { SignCard } from '../../runtime/index.ts'
import { cardSigner, type CardSignerOptions, type PrivateKey } from '../auth/card-signer.ts'
import { openVerifier } from '../auth/card-verifier.ts'
import type { JwtKeys } from '../auth/jwt-options.ts'
import { CommandError, usageError } from './command.ts'

/** A signer for the private key in a file, PEM or JWK. Throws CommandError for an unusable file, key or option. */
export async function signerFrom(
  file: string,
  cwd: string,
  options: Omit<CardSignerOptions, 'key'>
): Promise<SignCard> {
  const key = await privateKeyIn(file, cwd)
  return explained(() => cardSigner({ key, ...options }), file)
}

/**
 * A verifier for the public keys at a URL, or in a file: a JWK set, a JWK, or PEM. Throws CommandError for unusable
 * keys.
 */
export async function verifierFrom(keys: string, cwd: string): Promise<ReturnType<typeof openVerifier>> {
  const trusted: JwtKeys = /^https?:/i.test(keys) ? { jwksUrl: keys } : await publicKeysIn(keys, cwd)
  return explained(() => openVerifier(trusted), keys)
}

/** The text of a file. Throws CommandError if it cannot be read. */
export async function textIn(file: string, cwd: string): Promise<string> {
  const path = resolve(cwd, file)
  return readFile(path, 'utf8').catch((cause: Error) => {
    throw new CommandError(`${path} cannot be read: ${cause.message}`, { cause })
  })
}

/** Parses JSON text that came from a file. Throws CommandError for invalid JSON. */
export function jsonIn(text: string, file: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch (cause) {
    throw new CommandError(`${file} is not valid JSON: ${(cause as Error).message}`, { cause })
  }
}

async function privateKeyIn(file: string, cwd: string): Promise<PrivateKey> {
  const text = await textIn(file, cwd)
  if (text.trimStart().startsWith('{')) return jsonIn(text, file) as PrivateKey
  try {
    return createPrivateKey(text)
  } catch (cause) {
    throw new CommandError(`${file} holds no private key, PEM or JWK: ${(cause as Error).message}`, { cause })
  }
}

async function publicKeysIn(file: string, cwd: string): Promise<JwtKeys> {
  const text = await textIn(file, cwd)
  if (text.trimStart().startsWith('{')) {
    const json = jsonIn(text, file)
    return { jwks: (isObject(json) && 'keys' in json ? json : { keys: [json] }) as { keys: object[] } }
  }
  if (text.includes('PRIVATE KEY'))
    throw new CommandError(`${file} holds a private key. Give the public key: verifying needs no private key.`)
  try {
    return { key: createPublicKey(text) }
  } catch (cause) {
    throw new CommandError(`${file} holds no public keys, a JWK set, a JWK or PEM: ${(cause as Error).message}`, {
      cause
    })
  }
}

/** Turns a TypeError about the key or the options into a usage error that names the file. */
function explained<T>(make: () => T, file: string): T {
  try {
    return make()
  } catch (error) {
    throw usageError(`${file}: ${(error as TypeError).message}`)
  }
}

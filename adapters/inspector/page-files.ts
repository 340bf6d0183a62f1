import { readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { escaped } from '../drawing/svg/svg-element.ts'
import { LightResponse } from '../entry/answers.ts'

/** The path of the page's files. */
export const PAGE_PATH = '/inspector/'

/** A name below it: no `..`, nothing hidden. */
const NAME = /^\/inspector\/((?:\w[\w-]*\/)*\w[\w.-]*)$/

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.map': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2'
}

/** The built page: `index.html`, and the files that it loads. */
export class PageFiles {
  readonly #folder: string

  constructor(folder: URL) {
    this.#folder = fileURLToPath(folder)
  }

  /** The page with its settings as `meta` tags; `undefined` if it was not built. */
  async index(host: string, meta: Readonly<Record<string, string>>): Promise<Response | undefined> {
    const html = await this.#read('index.html')
    const tags = Object.entries(meta).map(([name, content]) => `<meta name="${name}" content="${escaped(content)}">`)
    return (
      html &&
      htmlAnswer(
        html.toString('utf8').replace(/<head[^>]*>/, head => `${head}${tags.join('')}`),
        host
      )
    )
  }

  /** A file of the page; `undefined` for an unknown name. Files with a hash in their names never change. */
  async file(pathname: string): Promise<Response | undefined> {
    const [, name] = NAME.exec(pathname) ?? []
    const type = TYPES[extname(pathname)]
    const bytes = name !== undefined && type !== undefined ? await this.#read(name) : undefined
    if (!bytes || !type || !name) return undefined
    const caching = name.startsWith('assets/') ? 'public, max-age=31536000, immutable' : 'no-cache'
    return new LightResponse(bytes, { headers: { ...SAFE, 'Content-Type': type, 'Cache-Control': caching } })
  }

  #read(name: string): Promise<Buffer<ArrayBuffer> | undefined> {
    return readFile(`${this.#folder}${name}`).catch(() => undefined)
  }
}

/** An HTML page whose policy allows resources of its own origin only, and frames of the given origins. */
export function htmlAnswer(html: string, host: string, frames: readonly string[] = []): Response {
  const sockets = /^[\w.:[\]-]+$/.test(host) ? ` ws://${host} wss://${host}` : ''
  const policy = [
    "default-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data: blob:",
    `connect-src 'self'${sockets}`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    ...(frames.length > 0 ? [`frame-src ${frames.join(' ')}`] : [])
  ]
  return new LightResponse(html, {
    headers: {
      ...SAFE,
      'Content-Type': 'text/html; charset=utf-8',
      'Cache-Control': 'no-store',
      'Content-Security-Policy': policy.join('; ')
    }
  })
}

const SAFE = {
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin'
}

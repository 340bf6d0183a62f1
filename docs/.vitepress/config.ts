import { copyFileSync, mkdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig, type DefaultTheme } from 'vitepress'
import { checkLinks } from './check-links.ts'
import { readContents, type Entry } from './contents.ts'
import { rewriteLinks, slugify } from './links.ts'
import { writeLlms } from './llms.ts'
import { drawMermaid } from './mermaid.ts'
import { writeSourcePages } from './source-pages.ts'

const DOCS = fileURLToPath(new URL('../', import.meta.url))
const SUMMARY = 'A TypeScript library that runs every A2A task as a statechart.'

/** The reference that typedoc has written, which is only in the site. */
const API: Entry = { title: 'API', page: 'api/index.md', hash: '', about: 'Every export of every subpath.' }

/** The path of the site on its host, with a slash at both ends. */
const BASE = process.env['DOCS_BASE'] ?? '/'

writeSourcePages(DOCS)
mkdirSync(join(DOCS, 'public'), { recursive: true })
for (const picture of ['adapters/inspector/page/icon.svg', 'docs/charts/barista.svg']) copyFileSync(join(DOCS, '..', picture), join(DOCS, 'public', basename(picture)))
const sections = readContents().map(section => (section.title === 'Reference' ? { ...section, entries: [API, ...section.entries] } : section))

export default defineConfig({
  title: 'taskchart',
  description: SUMMARY,
  lang: 'en',
  base: BASE,
  rewrites: { 'README.md': 'index.md' },
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: `${BASE}icon.svg` }]],
  markdown: {
    anchor: { slugify },
    languageAlias: { caddyfile: 'nginx', haproxy: 'nginx' },
    config: markdown => {
      rewriteLinks(markdown)
      drawMermaid(markdown)
    }
  },
  themeConfig: {
    logo: '/icon.svg',
    search: { provider: 'local' },
    outline: [2, 3],
    nav: sections.map(({ title, entries: [first] }) => ({ text: title, link: linkTo(first) })),
    sidebar: sections.map(({ title, entries }) => ({ text: title, items: entries.map(itemOf) }))
  },
  vite: { build: { chunkSizeWarningLimit: 4000 } },
  transformPageData: page => (page.relativePath === 'index.md' ? { frontmatter: home(), title: 'Documentation' } : undefined),
  buildEnd: ({ outDir }) => {
    writeLlms(DOCS, outDir, BASE, sections, SUMMARY)
    checkLinks(outDir, BASE)
  }
})

function linkTo(entry: Entry | undefined): string {
  return entry === undefined ? '/' : `/${entry.page}${entry.hash}`
}

function itemOf(entry: Entry): DefaultTheme.SidebarItem {
  const item = { text: entry.title, link: linkTo(entry) }
  return entry === API ? { ...item, collapsed: true, items: modules() } : item
}

/** The subpaths of the package, as typedoc lists them. */
function modules(): DefaultTheme.SidebarItem[] {
  const index = readFileSync(join(DOCS, API.page), 'utf8')
  return Array.from(index.matchAll(/^\| \[(taskchart[^\]]*)\]\(([^)]+)\)/gm), ([, text = '', path = '']) => ({ text, link: `/api/${path}` }))
}

/** The top of the first page, which is docs/README.md below it. */
function home(): Record<string, unknown> {
  return {
    layout: 'home',
    hero: {
      name: 'taskchart',
      text: 'A2A tasks as statecharts',
      tagline: 'See what a task may do, test every path of it, and resume it after a crash.',
      actions: [
        { theme: 'brand', text: 'Introduction', link: '/source/README' },
        { theme: 'alt', text: 'Write an agent', link: '/agents' },
        { theme: 'alt', text: 'API', link: '/api/' }
      ],
      image: { src: '/barista.svg', alt: 'A chart that is lit by the run of a task' }
    },
    features: [
      { title: 'Every task is an actor', details: 'Functions, generators and statecharts work on tasks, ask questions, and sleep for days.', link: '/work', linkText: 'Work' },
      { title: 'Tests of every path', details: 'The chart of an agent says what can happen. Tests are generated from it.', link: '/testing', linkText: 'Testing' },
      { title: 'Durable', details: 'An event is stored before a client sees it. Tasks and timers survive kill -9.', link: '/guarantees', linkText: 'Guarantees' },
      { title: 'Visible', details: 'A page shows tasks, charts and actors live. Charts can be drawn.', link: '/inspector', linkText: 'Inspector' },
      { title: 'Every binding', details: 'JSON-RPC, REST, WebSocket and gRPC, and A2A 0.3 and 0.1 beside 1.0.', link: '/bindings', linkText: 'Bindings' },
      { title: 'With the official SDK', details: 'Its clients, servers and executors work with taskchart, unchanged.', link: '/official-sdk', linkText: 'The official SDK' }
    ]
  }
}

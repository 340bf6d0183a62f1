import { readFileSync } from 'node:fs'
import { ArrayType, Comment, Converter, ReferenceType, ReflectionKind, UnknownType } from 'typedoc'

const { exports: subpaths } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
const architecture = readFileSync(new URL('architecture.md', import.meta.url), 'utf8')

/** The subpaths of the package, `taskchart/http` and so on, by the source that each exports. */
const names = new Map(Object.entries(subpaths).flatMap(([subpath, target]) =>
  typeof target === 'string' ? [] : [[target.types.replace('./dist/', '').replace('.d.ts', '.ts'), subpath.replace('.', 'taskchart')]]))

/** The description of a subpath in the table of docs/architecture.md. */
function summaryOf(name) {
  const [, summary] = architecture.match(new RegExp(`^\\| \`${name}\` \\| (.*) \\|$`, 'm')) ?? []
  if (summary === undefined) throw new TypeError(`docs/architecture.md has no row for ${name}.`)
  return `${summary[0].toUpperCase()}${summary.slice(1)}.`
}

/** Names each module by its subpath, since TypeDoc names it by its source file. */
function nameModules(app) {
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const module of project.children ?? []) {
      const name = names.get(`${module.name}.ts`) ?? names.get(`${module.name}/index.ts`)
      if (name === undefined) throw new TypeError(`No subpath exports ${module.name}.`)
      module.name = name
      module.comment = new Comment([{ kind: 'text', text: summaryOf(name) }])
    }
  })
}

/** The types of A2A's objects by the names of their members: they are inferred from schemas, and TypeDoc writes out the schemas. */
const MEMBERS = {
  artifact: 'Artifact', artifacts: 'Artifact[]', history: 'Message[]', message: 'Message', parts: 'Part[]', status: 'TaskStatus', task: 'Task', tasks: 'Task[]',
  skills: 'AgentSkill[]', supportedInterfaces: 'AgentInterface[]', extensions: 'AgentExtension[]', capabilities: 'AgentCapabilities', provider: 'AgentProvider',
  securitySchemes: 'Record<string, SecurityScheme>', securityRequirements: 'SecurityRequirement[]', signatures: 'AgentCardSignature[]'
}

/** The unions of objects by the names of their choices. */
const UNIONS = { 'message task': 'SendMessageResponse', 'artifactUpdate message statusUpdate task': 'StreamResponse', 'data raw text url': 'Part' }

/** Names the objects of A2A in the types of all members, parameters and results. */
function nameObjects(app) {
  app.converter.on(Converter.EVENT_RESOLVE_END, ({ project }) => {
    const linked = name => {
      const target = project.getChildByName(['taskchart', name])
      return target === undefined ? new UnknownType(name) : ReferenceType.createResolvedReference(name, target, project)
    }
    const typeOf = name => (name.endsWith('[]') ? new ArrayType(linked(name.slice(0, -2))) : linked(name))
    const named = type => {
      if (type.name === 'OneOf') {
        const choices = type.typeArguments?.[0]?.declaration?.children?.map(({ name }) => name).toSorted().join(' ') ?? 'data raw text url'
        return UNIONS[choices] === undefined ? type : linked(UNIONS[choices])
      }
      if (type.elementType) type.elementType = named(type.elementType)
      if (type.target && type.type === 'typeOperator') type.target = named(type.target)
      for (const part of ['typeArguments', 'types']) if (type[part]) type[part] = type[part].map(named)
      return type
    }
    for (const reflection of Object.values(project.reflections)) {
      if (reflection.extendedTypes?.every(({ name }) => name === 'output')) delete reflection.extendedTypes
      if (reflection.type === undefined || reflection.kindOf(ReflectionKind.TypeAlias) || !/\bFlat<|\bOneOf\b/.test(String(reflection.type))) continue
      const member = reflection.kindOf(ReflectionKind.Property) ? MEMBERS[reflection.name] : undefined
      reflection.type = member === undefined ? named(reflection.type) : typeOf(member)
    }
  })
}

/** @type {Partial<import('typedoc').TypeDocOptions> & Partial<import('typedoc-plugin-markdown').PluginOptions>} */
export default {
  plugin: ['typedoc-plugin-markdown', nameModules, nameObjects],
  entryPoints: [...names.keys()].map(path => `../${path}`),
  tsconfig: '../tsconfig.build.json',
  readme: 'none',
  name: 'API',
  out: 'api',
  router: 'member',
  entryFileName: 'index',
  disableSources: true,
  excludePrivate: true,
  excludeInternal: true,
  sort: ['alphabetical'],
  kindSortOrder: ['Function', 'Class', 'Interface', 'TypeAlias', 'Variable'],
  parametersFormat: 'table',
  interfacePropertiesFormat: 'table',
  typeDeclarationFormat: 'table',
  enumMembersFormat: 'table',
  useCodeBlocks: true,
  useHTMLEncodedBrackets: true,
  sanitizeComments: true,
  hidePageHeader: true,
  indexFormat: 'table',
  tableColumnSettings: { hideDefaults: true, hideInherited: true, hideModifiers: true, hideOverrides: true, hideSources: true },
  validation: { notExported: false, invalidLink: true, invalidPath: true },
  treatValidationWarningsAsErrors: true
}

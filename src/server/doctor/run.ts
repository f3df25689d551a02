// `adit admin doctor`: checks configuration, database and the machine without changing anything. Works
// whether or not a server is running, and without a database.
import type { Resolver } from 'node:dns/promises'
import { dirname, resolve } from 'node:path'
import { parseEdgeConfig } from '../config/edge.ts'
import { profilesPath, TOKENS_FILE, unknownSettings } from '../config/environment.ts'
import { type Config, parseConfig } from '../config/server.ts'
import { secretPath } from '../session-secret.ts'
import { type CheckResult, runChecks } from './check.ts'
import { checkConfiguration } from './configuration.ts'
import { databaseChecks } from './database.ts'
import { checkDisks, type Folder } from './disk.ts'
import { checkFiles, checkSecretFile, type PrivateFiles } from './files.ts'
import { checkDns, checkMail, checkOidc } from './network.ts'

const CHECK_TIMEOUT_MS = 15_000
/** The settings of deploy/adit.service and deploy/adit-edge.service. */
const ENVIRONMENT_FILES = ['/etc/adit/environment', '/etc/adit/edge.environment']
const DNS_LABEL_BYTES = 6

interface DoctorOptions {
  /** The environment of this process by default. */
  environment?: NodeJS.ProcessEnv
  clock: () => number
  random: (bytes: number) => Uint8Array
  resolver: Pick<Resolver, 'resolve4' | 'resolve6'>
}

export async function examine({
  environment,
  clock,
  random,
  resolver,
}: DoctorOptions): Promise<CheckResult[]> {
  const server = parseConfig(environment)
  const edge = parseEdgeConfig(environment)
  const { config } = server
  const edgeFolder = edge.config.folder
  const database = databaseChecks(config, clock)
  const dnsLabel = `adit-doctor-${Buffer.from(random(DNS_LABEL_BYTES)).toString('hex')}`
  try {
    return await runChecks(
      [
        {
          name: 'configuration',
          run: async () =>
            checkConfiguration({
              config,
              errors: [...new Set([...server.errors, ...edge.errors])],
              unknown: unknownSettings(environment),
            }),
        },
        ...database.checks,
        { name: 'disk', run: () => checkDisks(listFolders(config, edgeFolder)) },
        {
          name: 'files',
          run: async () => [
            ...(await checkSecret(config)),
            ...(await checkFiles(listPrivateFiles(config, edgeFolder, environment))),
          ],
        },
        { name: 'dns', run: () => checkDns({ domain: config.tunnelDomain, resolver, label: dnsLabel }) },
        { name: 'mail', run: () => checkMail(config.mail) },
        { name: 'oidc', run: () => checkOidc(config.sso) },
      ],
      CHECK_TIMEOUT_MS,
    )
  } finally {
    await database.close()
  }
}

const sqliteDatabase = ({ database }: Partial<Config>) =>
  database?.engine === 'sqlite' ? database : undefined

function listFolders(config: Partial<Config>, edgeFolder: string): Folder[] {
  const sqlite = sqliteDatabase(config)
  return [
    ...(sqlite ? [{ path: dirname(sqlite.path), use: 'database', isDatabase: true }] : []),
    { path: edgeFolder, use: 'usage spool of an edge', isDatabase: false },
  ]
}

const checkSecret = async (config: Partial<Config>) => {
  const sqlite = sqliteDatabase(config)
  if (!sqlite || config.secret !== undefined) return []
  return checkSecretFile(sqlite.path)
}

function listPrivateFiles(
  config: Partial<Config>,
  edgeFolder: string,
  environment: NodeJS.ProcessEnv | undefined,
): PrivateFiles[] {
  const database = sqliteDatabase(config)?.path
  return [
    ...(database === undefined
      ? []
      : [
          { paths: [dirname(database)], use: 'folder of the database' },
          { paths: [database, `${database}-wal`, `${database}-shm`], use: 'database', ownedLike: database },
          { paths: [secretPath(database)], use: 'session secret', ownedLike: database },
        ]),
    { paths: [edgeFolder], use: 'usage spool of an edge' },
    { paths: [profilesPath(environment)], use: 'API keys of profiles' },
    { paths: [resolve(TOKENS_FILE)], use: 'tokens file' },
    { paths: ENVIRONMENT_FILES, use: 'settings of the service' },
  ]
}

// The command that runs the control plane.
import { settings } from '../../server/config/server.ts'
import { command, inGroup } from '../command.ts'

export const serverCommands = inGroup('Server', [
  command({
    name: 'serve',
    summary: 'run the control plane: API, dashboard and edge API',
    details:
      'Creates the database if there is none, and migrates its schema. SIGTERM and SIGINT stop it after ' +
      'open requests are completed; a second signal stops it immediately.',
    options: { edge: { summary: 'also run an edge on this machine, configured by ADIT_EDGE_…' } },
    environment: settings,
    run: async ({ edge }, io) => (await import('../server/serve.ts')).serve(edge, io),
  }),
])

// What can be done with a request.
import { Button, Group, Menu, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type Exchange, isReplayable } from '../../../../src/inspector/api.ts'
import { ErrorAlert } from '../../components/lists/query-states.tsx'
import { showToast } from '../../components/toast.tsx'
import {
  ChevronIcon,
  CompareIcon,
  CopyIcon,
  DownloadIcon,
  EditIcon,
  MoreIcon,
  ReplayIcon,
  ShieldIcon,
} from '../../icons.tsx'
import type { Dialog } from '../app.tsx'
import { useLive } from '../live/use-live.ts'
import type { Replay } from '../replay/use-replay.ts'
import { type CopyFormat, copyFormats, copyRequest } from './copy-request.ts'
import { exportHar } from './export-har.ts'

interface ToolbarProps {
  exchange: Exchange
  isRevealed: boolean
  onReveal: (isRevealed: boolean) => void
  onDialog: (dialog: Dialog) => void
  replay: Replay
}

export function Toolbar({ exchange, isRevealed, onReveal, onDialog, replay }: ToolbarProps) {
  const { id, request, response, replayable, replayProblem } = exchange
  const isLive = useLive(({ status }) => status === 'live')
  const hasMasked = [request, response].some((part) =>
    part?.headers.concat(part.trailers).some(({ masked }) => masked),
  )
  const har = useMutation({ mutationFn: () => exportHar({ ids: id, reveal: isRevealed }) })
  return (
    <>
      <Group gap="xs">
        <Button
          size="sm"
          leftSection={<ReplayIcon size={16} />}
          disabled={!replayable || !isLive}
          loading={replay.isPending}
          onClick={() => replay.mutate(exchange)}
        >
          Replay
        </Button>
        <Button
          size="sm"
          variant="default"
          leftSection={<EditIcon size={16} />}
          disabled={!isReplayable(exchange) || !isLive}
          onClick={() => onDialog('edit')}
        >
          Edit
        </Button>
        <CopyMenu exchange={exchange} />
        <Menu width={230}>
          <Menu.Target>
            <Button size="sm" variant="default" px="sm" aria-label="More actions">
              <MoreIcon />
            </Button>
          </Menu.Target>
          <Menu.Dropdown>
            <Menu.Item leftSection={<CompareIcon size={16} />} onClick={() => onDialog('compare')}>
              Compare responses
            </Menu.Item>
            <Menu.Item leftSection={<ShieldIcon size={16} />} onClick={() => onDialog('signature')}>
              Check webhook signature
            </Menu.Item>
            <Menu.Item leftSection={<DownloadIcon size={16} />} onClick={() => har.mutate()}>
              Export as HAR
            </Menu.Item>
          </Menu.Dropdown>
        </Menu>
        {(hasMasked || isRevealed) && (
          <Button size="sm" variant="default" onClick={() => onReveal(!isRevealed)}>
            {isRevealed ? 'Mask values' : 'Show masked values'}
          </Button>
        )}
      </Group>
      {replayProblem && (
        <Text size="sm" c="dimmed">
          {replayProblem}
        </Text>
      )}
      <ErrorAlert error={(replay.variables?.id === id ? replay.error : null) ?? har.error} />
    </>
  )
}

function CopyMenu({ exchange }: { exchange: Exchange }) {
  const tunnels = useLive((state) => state.tunnels)
  const url = tunnels.find(({ name }) => name === exchange.tunnel)?.url || exchange.target
  const copy = useMutation({
    mutationFn: (format: CopyFormat) => copyRequest(exchange, url, format),
    onSuccess: (_, format) => showToast(`Copied ${copyFormats[format]}.`),
  })
  return (
    <>
      <Menu width={200}>
        <Menu.Target>
          <Button
            size="sm"
            variant="default"
            leftSection={<CopyIcon size={16} />}
            rightSection={<ChevronIcon size={14} />}
            loading={copy.isPending}
          >
            Copy
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {Object.entries(copyFormats).map(([format, name]) => (
            <Menu.Item key={format} onClick={() => copy.mutate(format as CopyFormat)}>
              {name}
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
      {copy.error && <ErrorAlert error={copy.error} />}
    </>
  )
}

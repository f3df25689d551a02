// Downloads the entries that match the filter.
import { Button, Menu } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { callForFile } from '../api.ts'
import { downloadBlob } from '../download.ts'
import { DownloadIcon } from '../icons.tsx'
import { invalidateWorkspace } from '../queries.ts'
import { type AuditFilter, toRequest } from './filter.ts'

const formats = { csv: 'CSV, for spreadsheets', ndjson: 'NDJSON, one JSON object per line' } as const
type Format = keyof typeof formats

export const useExport = (workspace: string, filter: AuditFilter) =>
  useMutation({
    mutationFn: (format: Format) => callForFile('audit.export', { workspace, format, ...toRequest(filter) }),
    onSuccess(file, format) {
      const today = new Date().toISOString().slice(0, 10)
      downloadBlob(`adit-audit-${workspace}-${today}.${format}`, file)
      void invalidateWorkspace(workspace)
    },
  })

export function ExportMenu({ exporting }: { exporting: ReturnType<typeof useExport> }) {
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="default" leftSection={<DownloadIcon />} loading={exporting.isPending}>
          Export
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {Object.entries(formats).map(([format, label]) => (
          <Menu.Item key={format} onClick={() => exporting.mutate(format as Format)}>
            {label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}

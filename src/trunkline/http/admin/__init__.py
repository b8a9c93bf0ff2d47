"""The operators' JSON API under `/admin/api/` (docs/admin-api.md): one file a group of endpoints."""

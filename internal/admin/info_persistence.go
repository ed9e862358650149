package admin

// The section of INFO about files.

func (i *info) persistence() {
	f := i.svc.Host.Files()
	link, _ := i.svc.Replication.Link()
	i.put("loading", f.Loading || i.svc.Host.Loading())
	i.put("async_loading", link.Async)
	i.zeros("current_cow_peak", "current_cow_size", "current_cow_size_age")
	i.put("current_fork_perc", 0.0)
	i.put("current_save_keys_processed", f.SavedKeys)
	i.put("current_save_keys_total", f.TotalKeys)
	i.put("rdb_changes_since_last_save", f.Dirty)
	i.put("rdb_bgsave_in_progress", f.Saving)
	i.put("rdb_last_save_time", f.LastSave)
	i.put("rdb_last_bgsave_status", okOrErr(f.LastSaveOK))
	i.put("rdb_last_bgsave_time_sec", f.LastSaveTime)
	i.put("rdb_current_bgsave_time_sec", f.CurrentSave)
	i.put("rdb_saves", f.Saves)
	i.zeros("rdb_last_cow_size")
	i.put("rdb_last_load_keys_expired", f.ExpiredOnLoad)
	i.put("rdb_last_load_keys_loaded", f.LoadedKeys)
	i.put("aof_enabled", f.AppendOnly)
	i.put("aof_rewrite_in_progress", f.Rewriting)
	i.put("aof_rewrite_scheduled", f.RewriteScheduled)
	i.put("aof_last_rewrite_time_sec", f.LastRewriteTime)
	i.put("aof_current_rewrite_time_sec", f.CurrentRewrite)
	i.put("aof_last_bgrewrite_status", okOrErr(f.LastRewriteOK))
	i.put("aof_rewrites", f.Rewrites)
	i.put("aof_rewrites_consecutive_failures", f.RewriteFailures)
	i.put("aof_last_write_status", okOrErr(f.LastWriteOK))
	i.zeros("aof_last_cow_size", "module_fork_in_progress", "module_fork_last_cow_size")
	if f.AppendOnly {
		i.put("aof_current_size", f.CurrentSize)
		i.put("aof_base_size", f.BaseSize)
		i.zeros("aof_pending_rewrite")
		i.put("aof_buffer_length", f.Buffered)
		i.put("aof_pending_bio_fsync", f.PendingSync)
		i.put("aof_delayed_fsync", f.DelayedSyncs)
	}
	if f.Loading {
		i.put("loading_start_time", f.LoadingStart)
		i.put("loading_total_bytes", f.LoadingTotal)
		i.zeros("loading_rdb_used_mem")
		i.put("loading_loaded_bytes", f.LoadingLoaded)
		i.put("loading_loaded_perc", 100*Ratio(f.LoadingLoaded, f.LoadingTotal))
		i.put("loading_eta_seconds", f.LoadingETA)
	}
}

func okOrErr(ok bool) string {
	if ok {
		return "ok"
	}
	return "err"
}

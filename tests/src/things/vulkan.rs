//! Semaphores made by Vulkan, for the driver to import.

use std::os::fd::{FromRawFd, OwnedFd};

use ash::vk;

/// A semaphore of Vulkan that others can import.
pub struct VulkanSemaphore {
    // In the order of destruction.
    semaphore: vk::Semaphore,
    device: ash::Device,
    instance: ash::Instance,
    _entry: ash::Entry,
}

impl core::fmt::Debug for VulkanSemaphore {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.debug_tuple("VulkanSemaphore").field(&self.semaphore).finish()
    }
}

const FD: vk::ExternalSemaphoreHandleTypeFlags = vk::ExternalSemaphoreHandleTypeFlags::OPAQUE_FD;

/// An instance that is destroyed at the end of its scope unless it is taken.
struct Opening(Option<ash::Instance>);

impl Drop for Opening {
    fn drop(&mut self) {
        if let Some(instance) = self.0.take() {
            // SAFETY: nothing was made of it.
            unsafe { instance.destroy_instance(None) };
        }
    }
}

impl VulkanSemaphore {
    /// A semaphore on the device with this identity: a timeline at 0, or else a binary one.
    ///
    /// # Errors
    /// A sentence, if there is no Vulkan loader (`libvulkan.so.1`) or no such device, or it cannot
    /// export semaphores.
    pub fn new(uuid: [u8; 16], timeline: bool) -> Result<Self, String> {
        // SAFETY: the loader of the system does what it says.
        let entry = unsafe { ash::Entry::load() }.map_err(|error| format!("no Vulkan loader: {error}"))?;
        let version = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_2);
        let asked = vk::InstanceCreateInfo::default().application_info(&version);
        // SAFETY: the description is complete.
        let instance = unsafe { entry.create_instance(&asked, None) }
            .map_err(|error| format!("no Vulkan instance: {error}"))?;
        let mut opening = Opening(Some(instance.clone()));
        let physical = physical_device(&instance, uuid)?;
        let queues = [vk::DeviceQueueCreateInfo::default().queue_family_index(0).queue_priorities(&[1.0])];
        let extensions = [ash::khr::external_semaphore_fd::NAME.as_ptr()];
        let mut features = vk::PhysicalDeviceTimelineSemaphoreFeatures::default().timeline_semaphore(true);
        let asked = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queues)
            .enabled_extension_names(&extensions)
            .push_next(&mut features);
        // SAFETY: the physical device is the instance's, and the description complete.
        let device = unsafe { instance.create_device(physical, &asked, None) }
            .map_err(|error| format!("no Vulkan device with semaphores for others: {error}"))?;
        let mut export = vk::ExportSemaphoreCreateInfo::default().handle_types(FD);
        let kind = if timeline { vk::SemaphoreType::TIMELINE } else { vk::SemaphoreType::BINARY };
        let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(kind);
        let asked = vk::SemaphoreCreateInfo::default().push_next(&mut export).push_next(&mut kind);
        // SAFETY: the description is complete.
        match unsafe { device.create_semaphore(&asked, None) } {
            Ok(semaphore) => {
                opening.0 = None;
                Ok(Self { semaphore, device, instance, _entry: entry })
            }
            Err(error) => {
                // SAFETY: nothing was made of it.
                unsafe { device.destroy_device(None) };
                Err(format!("no semaphore for others: {error}"))
            }
        }
    }

    /// A descriptor for `cuImportExternalSemaphore`.
    ///
    /// # Panics
    /// Vulkan refuses.
    #[must_use]
    pub fn descriptor(&self) -> OwnedFd {
        let extension = ash::khr::external_semaphore_fd::Device::new(&self.instance, &self.device);
        let asked = vk::SemaphoreGetFdInfoKHR::default().semaphore(self.semaphore).handle_type(FD);
        // SAFETY: the semaphore lives and was made for this.
        let raw = unsafe { extension.get_semaphore_fd(&asked) }.expect("the semaphore can be exported");
        // SAFETY: the descriptor is new and the caller's.
        unsafe { OwnedFd::from_raw_fd(raw) }
    }

    /// The value of a timeline.
    ///
    /// # Panics
    /// Vulkan refuses.
    #[must_use]
    pub fn value(&self) -> u64 {
        // SAFETY: the semaphore lives.
        unsafe { self.device.get_semaphore_counter_value(self.semaphore) }.expect("a timeline has a number")
    }

    /// Raises a timeline.
    ///
    /// # Panics
    /// Vulkan refuses.
    pub fn set_value(&self, value: u64) {
        let asked = vk::SemaphoreSignalInfo::default().semaphore(self.semaphore).value(value);
        // SAFETY: the semaphore lives.
        unsafe { self.device.signal_semaphore(&asked) }.expect("a timeline can be raised");
    }
}

/// The device with this UUID, which is the same for Vulkan and CUDA.
fn physical_device(instance: &ash::Instance, uuid: [u8; 16]) -> Result<vk::PhysicalDevice, String> {
    // SAFETY: the instance lives.
    let all = unsafe { instance.enumerate_physical_devices() }
        .map_err(|error| format!("no Vulkan devices: {error}"))?;
    let is_it = |physical: &vk::PhysicalDevice| {
        let mut identity = vk::PhysicalDeviceIDProperties::default();
        let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut identity);
        // SAFETY: the device is the instance's.
        unsafe { instance.get_physical_device_properties2(*physical, &mut properties) };
        identity.device_uuid == uuid
    };
    all.into_iter().find(is_it).ok_or_else(|| "Vulkan does not know the device".to_owned())
}

impl Drop for VulkanSemaphore {
    fn drop(&mut self) {
        // SAFETY: nobody else has them, and this is the last use.
        unsafe {
            self.device.destroy_semaphore(self.semaphore, None);
            self.device.destroy_device(None);
            self.instance.destroy_instance(None);
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

//! What a testbed is made of.

use design::{Design, Identity, Profile};
use device::{Factory, FaultInjection, Model, RtlOptions};
use host::{HostParameters, Machine, SharedMachine};
use sim::{Bar, Media};
use spec::bar4::STATUS;

use crate::{attach, host_parameters, set_media_profile, PoweredDevice, Result, Testbed};

/// Where the devices of a testbed come from.
pub(crate) enum Origin<'a> {
    Design(&'a Design),
    Factory(&'a Factory),
}

/// The description of a testbed. By default it has one device on the RTL model, with the media
/// that the design names, and the design's host.
pub struct Builder<'a> {
    origin: Origin<'a>,
    model: Model,
    rtl_options: RtlOptions,
    devices: usize,
    media: Vec<Media>,
    identities: Vec<Identity>,
    /// Devices in addition to those of the design.
    others: Vec<(&'a Factory, Media, Option<Identity>)>,
    fault: Option<FaultInjection>,
    host: Option<HostParameters>,
    media_profile: bool,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(origin: Origin<'a>) -> Builder<'a> {
        Builder {
            origin,
            model: Model::default(),
            rtl_options: RtlOptions::default(),
            devices: 1,
            media: Vec::new(),
            identities: Vec::new(),
            others: Vec::new(),
            fault: None,
            host: None,
            media_profile: false,
        }
    }

    /// What simulates the devices; a factory has determined that.
    pub fn model(mut self, model: Model) -> Builder<'a> {
        self.model = model;
        self
    }

    /// How the RTL is built and run; a factory has determined that.
    pub fn rtl_options(mut self, options: RtlOptions) -> Builder<'a> {
        self.rtl_options = options;
        self
    }

    /// Number of devices of the design.
    pub fn devices(mut self, devices: usize) -> Builder<'a> {
        self.devices = devices;
        self
    }

    /// The media of the devices of the design, one for each.
    pub fn media(mut self, media: Vec<Media>) -> Builder<'a> {
        self.devices = media.len();
        self.media = media;
        self
    }

    /// The identities of the devices of the design.
    pub fn identities(mut self, identities: Vec<Identity>) -> Builder<'a> {
        self.identities = identities;
        self
    }

    /// Adds a device, of any design.
    pub fn beside(
        mut self,
        factory: &'a Factory,
        media: Media,
        identity: Option<Identity>,
    ) -> Builder<'a> {
        self.others.push((factory, media, identity));
        self
    }

    /// A fault of the devices of the design, as a negative control.
    pub fn fault(mut self, fault: Option<FaultInjection>) -> Builder<'a> {
        self.fault = fault;
        self
    }

    /// The costs of loads and stores, instead of those of the design's host profile. How the
    /// devices are attached, and the costs of drivers, stay those of the design.
    pub fn host(mut self, parameters: HostParameters) -> Builder<'a> {
        self.host = Some(parameters);
        self
    }

    /// Gives the storage of all devices the timing of the media profile of their design, after
    /// power-on.
    pub fn media_profile(mut self) -> Builder<'a> {
        self.media_profile = true;
        self
    }

    /// Powers the devices.
    pub fn build(self) -> Result<Testbed> {
        let made;
        let factory = match self.origin {
            Origin::Factory(factory) => factory,
            Origin::Design(design) => {
                made = Factory::new(design, self.model, &self.rtl_options, &mut |_| true)?;
                &made
            }
        };
        let (mut media, mut identities) = (self.media.into_iter(), self.identities.into_iter());
        let (mut devices, mut powered) = (Vec::new(), Vec::new());
        let mut add = |factory: &Factory, device| -> Result<()> {
            let design = factory.design();
            let (_, link) = design.attached()?;
            powered.push((device, link, design.window_bytes()));
            devices.push(PoweredDevice {
                design: design.clone(),
                engines: factory.engines().to_vec(),
            });
            Ok(())
        };
        for _ in 0..self.devices {
            let media = media.next().map_or_else(|| factory.media(), Ok)?;
            let device = factory.device_with(media, identities.next(), self.fault)?;
            add(factory, device)?;
        }
        for (factory, media, identity) in self.others {
            add(factory, factory.device_with(media, identity, None)?)?;
        }
        let design = factory.design();
        let system = attach(&design.attached()?.0, powered)?;
        let parameters = match self.host {
            Some(parameters) => parameters,
            None => HostParameters {
                read_back: Some((Bar::Control, STATUS)),
                ..host_parameters(&design.cpu.host()?)
            },
        };
        let testbed = Testbed {
            machine: SharedMachine::new(Machine::new(system, parameters)),
            devices,
        };
        if self.media_profile {
            for device in 0..testbed.devices() {
                let profile = Profile::find(&testbed.design(device).media.profile)?;
                set_media_profile(&mut testbed.host(device, 1, 0), &profile)?;
            }
        }
        Ok(testbed)
    }
}
